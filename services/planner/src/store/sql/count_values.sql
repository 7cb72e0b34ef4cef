-- Returns the number of values of a set. Run by store::sets::count.
SELECT value_count FROM planner.partition_sets WHERE tenant = $1 AND workspace = $2 AND set_name = $3
