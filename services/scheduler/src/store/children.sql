-- Called by GetTask: how many children each mapped task has.
SELECT ordinal, count(*) FROM scheduler.tasks WHERE run_number = $1 AND item >= 0 GROUP BY ordinal
