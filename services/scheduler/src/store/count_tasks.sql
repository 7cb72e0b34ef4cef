SELECT state, count(*) FROM scheduler.tasks WHERE run_number = $1 GROUP BY state
