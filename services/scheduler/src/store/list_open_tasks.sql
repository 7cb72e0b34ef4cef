-- Lists the tasks of a run that have not ended, in plan order. Run by store::tasks::list_open.
SELECT run_number, ordinal, item, attempt, failures, state, reason, cancelling, pushed, changed_at, ready_at,
    claimed_at, started_at, ended_at, due_at, attempt_id, worker_id, session, items
FROM scheduler.tasks
WHERE run_number = $1 AND (ordinal, item) > ($2, $3) AND ended_at IS NULL
ORDER BY run_number, ordinal, item
LIMIT $4
