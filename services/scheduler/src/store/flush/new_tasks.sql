-- Part of a flush: inserts tasks. Run by store::flush::statement.
INSERT INTO scheduler.tasks (tenant, run_number, ordinal, item, attempt, failures, state, reason, cancelling, pushed,
    changed_at, ready_at, claimed_at, started_at, ended_at, due_at, attempt_id, worker_id, session, error, items)
SELECT t.tenant, t.number, t.ordinal, t.item, t.attempt, t.failures, t.state, t.reason, t.cancelling, t.pushed,
    t.changed_at, t.ready_at, t.claimed_at, t.started_at, t.ended_at, t.due_at, t.attempt_id, t.worker, t.session,
    t.error, t.items
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
    AS t (tenant, number, ordinal, item, attempt, failures, state, reason, cancelling, pushed, changed_at, ready_at,
        claimed_at, started_at, ended_at, due_at, attempt_id, worker, session, error, items)
