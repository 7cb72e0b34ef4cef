-- Called by TailLogs: how many attempts each task of a run has had, and which is active.
SELECT ordinal, item, attempt, attempt_id, state FROM scheduler.tasks WHERE run_number = $1 AND attempt > 0
