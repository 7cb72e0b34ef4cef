-- Finds tasks of a run by their ordinals, without mapped tasks. Run by
-- store::tasks::find_by_ordinals.
SELECT run_number, ordinal, item, attempt, failures, state, reason, cancelling, pushed, changed_at, ready_at,
    claimed_at, started_at, ended_at, due_at, attempt_id, worker_id, session, items
FROM scheduler.tasks
WHERE run_number = $1 AND ordinal = ANY ($2) AND item = -1 /* not mapped */
