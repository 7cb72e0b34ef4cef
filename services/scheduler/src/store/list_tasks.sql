-- Lists the tasks of a run in plan order. Run by store::tasks::list.
SELECT run_number, ordinal, item, attempt, failures, state, reason, cancelling, pushed, changed_at, ready_at,
    claimed_at, started_at, ended_at, due_at, attempt_id, worker_id, session, items, error, NULL::timestamptz AS beat_at
FROM scheduler.tasks
WHERE run_number = $1 AND (ordinal, item) > ($2, $3)
ORDER BY run_number, ordinal, item
LIMIT $4
