-- Locks a queue and computes its tokens, so that pushers claim one after the other. Run by
-- statements::lock_queue.
SELECT paused, least($2, tokens + extract(epoch FROM clock_timestamp() - refilled_at)::double precision * $3)
FROM dispatcher.queues WHERE queue = $1 FOR UPDATE
