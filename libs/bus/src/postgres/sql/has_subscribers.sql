-- Whether the topic has a subscription. Run by statements::has_subscribers.
SELECT EXISTS (SELECT FROM bus.cursors WHERE topic = $1)
