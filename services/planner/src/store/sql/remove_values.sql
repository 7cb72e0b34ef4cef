-- Called by RemoveDynamicPartitions, which holds the set's lock. Answers the values that were there.
DELETE FROM planner.partition_values
WHERE tenant = $1 AND workspace = $2 AND set_name = $3 AND value = ANY ($4)
RETURNING value
