-- Counts the tasks of several runs by state. Run by store::tasks::count_by_run_and_state.
SELECT run_number, state, count(*) FROM scheduler.tasks WHERE run_number = ANY ($1) GROUP BY run_number, state
