-- Leases due tasks, oldest first, and deducts their tokens. A task whose lease expired is due as
-- well. Run by statements::claim, which holds the lock on the queue's row.
WITH due AS (
    SELECT name FROM dispatcher.queue_entries
    WHERE queue = $1 AND state = 2 /* CREATED */ AND due_at <= statement_timestamp()
    ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE dispatcher.queue_entries e
    SET leased_by = $5, due_at = statement_timestamp() + $4::interval, tries = e.tries + 1
    FROM due WHERE e.queue = $1 AND e.name = due.name
    RETURNING e.name, e.url, e.body, e.tries
), paid AS (
    UPDATE dispatcher.queues
    SET tokens = greatest($3 - (SELECT count(*) FROM claimed), 0), refilled_at = clock_timestamp()
    WHERE queue = $1
)
SELECT name, url, body, tries FROM claimed
