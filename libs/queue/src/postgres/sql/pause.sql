-- Pauses or resumes a queue and wakes the pushers. Run by statements::pause.
WITH changed AS (
    UPDATE dispatcher.queues SET paused = $2 WHERE queue = $1 RETURNING queue
)
SELECT pg_notify($3, '') FROM changed
