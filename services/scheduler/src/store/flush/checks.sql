-- Part of a flush: inserts check results. Run by store::flush::statement.
INSERT INTO scheduler.check_results (attempt_id, place, tenant, workspace, asset_key, partition_key, name, passed, severity,
    run_number, ordinal, item, recorded_at, result)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
