-- Finds a task of a run. Run by store::tasks::find.
SELECT run_number, ordinal, item, attempt, failures, state, reason, cancelling, pushed, changed_at, ready_at,
    claimed_at, started_at, ended_at, due_at, attempt_id, worker_id, session, items, error, NULL::timestamptz AS beat_at
FROM scheduler.tasks
WHERE run_number = $1 AND ordinal = $2 AND item = $3
