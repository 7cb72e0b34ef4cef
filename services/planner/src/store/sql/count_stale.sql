-- Counts the partitions of these assets whose data was made by another code version than the given
-- one, among at most $5 partitions. Run by store::statuses::count_stale.
SELECT count(*) FILTER (WHERE looked_at.stale)
FROM (
    SELECT coalesce(p.code_version, '') <> a.code_version AS stale
    FROM unnest($3::text[], $4::text[]) AS a (asset_key, code_version)
    JOIN scheduler.partitions p ON p.tenant = $1 AND p.workspace = $2 AND p.asset_key = a.asset_key
    WHERE p.materialization_id IS NOT NULL
    LIMIT $5
) AS looked_at
