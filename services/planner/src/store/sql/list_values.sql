-- Lists the values of a set behind an ordinal. Run by store::sets::list.
SELECT value, ordinal, created_at FROM planner.partition_values
WHERE tenant = $1 AND workspace = $2 AND set_name = $3 AND ordinal > $4
ORDER BY ordinal LIMIT $5
