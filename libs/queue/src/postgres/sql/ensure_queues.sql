-- Creates the queues that do not exist yet. Run by statements::ensure_queues.
INSERT INTO dispatcher.queues (queue, tokens)
SELECT * FROM unnest($1::text[], $2::double precision[])
ON CONFLICT (queue) DO NOTHING
