-- Counts the mapped tasks of each mapped parent. Run by store::tasks::count_mapped.
SELECT ordinal, count(*) FROM scheduler.tasks WHERE run_number = $1 AND item >= 0 /* mapped */ GROUP BY ordinal
