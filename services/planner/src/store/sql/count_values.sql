-- Called by ListDynamicPartitions.
SELECT value_count FROM planner.partition_sets WHERE tenant = $1 AND workspace = $2 AND set_name = $3
