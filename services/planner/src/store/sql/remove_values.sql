-- Removes values from a set and returns those that existed; the caller holds the set's lock. Run by
-- store::sets::remove.
DELETE FROM planner.partition_values
WHERE tenant = $1 AND workspace = $2 AND set_name = $3 AND value = ANY ($4)
RETURNING value
