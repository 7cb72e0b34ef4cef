-- Called at start by every process that uses the queues.
INSERT INTO dispatcher.queues (queue, tokens)
SELECT * FROM unnest($1::text[], $2::double precision[])
ON CONFLICT (queue) DO NOTHING
