-- Called for a batch of envelopes whose tasks read something: of each wanted partition the version that the plan takes
-- over from the run it retries, or else the one that readers get.
SELECT w.place, coalesce(pinned.attempt_id, p.materialization_id), coalesce(pinned.output, latest.output)
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::uuid[]) WITH ORDINALITY
    AS w (tenant, workspace, asset_key, partition_key, pinned, place)
LEFT JOIN scheduler.materializations pinned
    ON pinned.attempt_id = w.pinned AND pinned.asset_key = w.asset_key AND pinned.tenant = w.tenant
    AND pinned.state = 3
LEFT JOIN scheduler.partitions p
    ON pinned.attempt_id IS NULL AND p.tenant = w.tenant AND p.workspace = w.workspace
    AND p.asset_key = w.asset_key AND p.partition_key = w.partition_key
LEFT JOIN scheduler.materializations latest
    ON latest.attempt_id = p.materialization_id AND latest.asset_key = w.asset_key
