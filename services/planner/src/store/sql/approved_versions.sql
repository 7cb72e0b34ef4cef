-- Lists the partitions of an asset whose readers get a version that was quarantined first, with the
-- time of its approval. Only few versions are. Run by store::statuses::approved.
SELECT p.partition_key, m.promoted_at
FROM scheduler.materializations m
JOIN scheduler.partitions p ON p.tenant = m.tenant AND p.workspace = m.workspace AND p.asset_key = m.asset_key
    AND p.partition_key = m.partition_key AND p.materialization_id = m.attempt_id
WHERE m.tenant = $1 AND m.workspace = $2 AND m.asset_key = $3 AND m.promoted_at > m.recorded_at
