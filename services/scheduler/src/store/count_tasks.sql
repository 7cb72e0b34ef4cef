-- Called by GetRun while the run has not ended.
SELECT state, count(*) FROM scheduler.tasks WHERE run_number = $1 GROUP BY state
