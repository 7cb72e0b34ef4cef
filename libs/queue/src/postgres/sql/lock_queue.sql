-- Called by the pusher before it claims: pushers take turns, and each sees what the one before took.
SELECT paused, least($2, tokens + extract(epoch FROM clock_timestamp() - refilled_at)::double precision * $3)
FROM dispatcher.queues WHERE queue = $1 FOR UPDATE
