-- Part of a flush: updates tasks. Run by store::flush::statement.
UPDATE scheduler.tasks s
SET attempt = t.attempt, failures = t.failures, state = t.state, reason = t.reason, cancelling = t.cancelling,
    pushed = t.pushed, changed_at = t.changed_at, ready_at = t.ready_at, claimed_at = t.claimed_at,
    started_at = t.started_at, ended_at = t.ended_at, due_at = t.due_at, attempt_id = t.attempt_id,
    worker_id = t.worker, session = t.session, error = coalesce(t.error, s.error), items = coalesce(t.items, s.items)
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
    AS t (number, ordinal, item, attempt, failures, state, reason, cancelling, pushed, changed_at, ready_at,
        claimed_at, started_at, ended_at, due_at, attempt_id, worker, session, error, items)
WHERE s.run_number = t.number AND s.ordinal = t.ordinal AND s.item = t.item
