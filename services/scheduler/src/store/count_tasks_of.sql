-- Called by ListRuns for the runs of a page that have not ended.
SELECT run_number, state, count(*) FROM scheduler.tasks WHERE run_number = ANY ($1) GROUP BY run_number, state
