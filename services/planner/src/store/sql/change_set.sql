-- Called by AddDynamicPartitions and RemoveDynamicPartitions, which hold the set's lock.
UPDATE planner.partition_sets SET version = $4, last_ordinal = $5, value_count = $6
WHERE tenant = $1 AND workspace = $2 AND set_name = $3
