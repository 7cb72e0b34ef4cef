-- Called by Deploy: how many partitions of these assets hold data of another code version than the one named.
SELECT count(*)
FROM unnest($3::text[], $4::text[]) AS a (asset_key, code_version)
JOIN scheduler.partitions p ON p.tenant = $1 AND p.workspace = $2 AND p.asset_key = a.asset_key
WHERE p.materialization_id IS NOT NULL AND coalesce(p.code_version, '') <> a.code_version
