-- Updates the version and counts of a set; the caller holds the set's lock. Run by
-- store::sets::update.
UPDATE planner.partition_sets SET version = $4, last_ordinal = $5, value_count = $6
WHERE tenant = $1 AND workspace = $2 AND set_name = $3
