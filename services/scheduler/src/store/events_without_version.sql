-- Lists the events of which one partition has no promoted materialization.
-- Run by store::partitions::list_events_without_version.
SELECT DISTINCT w.event_id
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[])
    AS w (event_id, tenant, workspace, asset_key, partition_key)
WHERE NOT EXISTS (
    SELECT FROM scheduler.partitions p
    WHERE p.tenant = w.tenant AND p.workspace = w.workspace AND p.asset_key = w.asset_key
        AND p.partition_key = w.partition_key AND p.materialization_id IS NOT NULL
);
