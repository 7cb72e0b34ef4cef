-- Reads the number of attempts and the last attempt of each task of a run. Run by
-- store::runs::task_attempts.
SELECT ordinal, item, attempt, attempt_id, state FROM scheduler.tasks WHERE run_number = $1 AND attempt > 0
