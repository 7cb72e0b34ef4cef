-- Counts the tasks of a run by state. Run by store::tasks::count_by_state.
SELECT state, count(*) FROM scheduler.tasks WHERE run_number = $1 GROUP BY state
