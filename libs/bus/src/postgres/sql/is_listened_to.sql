-- Called by Listeners: whether anybody subscribed to the topic.
SELECT EXISTS (SELECT FROM bus.cursors WHERE topic = $1)
