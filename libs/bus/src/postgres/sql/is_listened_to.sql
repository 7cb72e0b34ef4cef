-- Called by Listeners: whether anybody subscribed to anything.
SELECT EXISTS (SELECT FROM bus.cursors)
