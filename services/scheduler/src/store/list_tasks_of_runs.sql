-- Lists all tasks of several runs. Run by store::tasks::list_of_runs.
SELECT run_number, ordinal, item, attempt, failures, state, reason, cancelling, pushed, changed_at, ready_at,
    claimed_at, started_at, ended_at, due_at, attempt_id, worker_id, session, items
FROM scheduler.tasks
WHERE run_number = ANY ($1)
ORDER BY run_number, ordinal, item
