-- Called by Explain: how these tasks of a run stand, their children left out.
SELECT run_number, ordinal, item, attempt, failures, state, reason, cancelling, pushed, changed_at, ready_at,
    claimed_at, started_at, ended_at, due_at, attempt_id, worker_id, session, items
FROM scheduler.tasks
WHERE run_number = $1 AND ordinal = ANY ($2) AND item = -1
