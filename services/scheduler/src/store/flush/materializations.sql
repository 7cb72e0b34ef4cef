-- Part of a flush: inserts materializations. Run by store::flush::statement.
INSERT INTO scheduler.materializations (attempt_id, asset_key, partition_key, tenant, workspace, run_number, ordinal, item,
    state, recorded_at, promoted_at, output)
SELECT m.attempt, m.asset, m.partition, m.tenant, m.workspace, m.number, m.ordinal, m.item, m.state, m.at,
    CASE WHEN m.state = 3 /* PROMOTED */ THEN m.at END, m.output
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    AS m (attempt, asset, partition, tenant, workspace, number, ordinal, item, state, at, output)
