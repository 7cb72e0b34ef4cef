-- Sums usage and cost by time and group. $4 is the grain, $5 to $7 are the dimensions with separate
-- lines, $8 to $10 the filter, $11 the currency ('' includes all), and $12 to $15 the line behind
-- which the page begins. Run by store::report::lines.
WITH line AS (
    SELECT
        CASE $4::smallint WHEN 2 /* HOUR */ THEN hour
            WHEN 3 /* DAY */ THEN date_trunc('day', hour, 'UTC')
            WHEN 4 /* MONTH */ THEN date_trunc('month', hour, 'UTC') ELSE $2 END AS begins,
        CASE WHEN $5 THEN workspace ELSE '' END AS by_workspace,
        CASE WHEN $6 THEN asset ELSE '' END AS by_asset,
        CASE WHEN $7 THEN pool ELSE '' END AS by_pool,
        usage.*
    FROM quota.usage
    WHERE tenant = $1 AND hour >= date_trunc('hour', $2::timestamptz) AND hour < $3
        AND ($8::text IS NULL OR workspace = $8) AND ($9::text IS NULL OR asset = $9)
        AND ($10::text IS NULL OR pool = $10) AND ($11 = '' OR currency = $11)
)
SELECT begins,
    CASE $4::smallint WHEN 2 /* HOUR */ THEN begins + interval '1 hour'
        WHEN 3 /* DAY */ THEN begins + interval '24 hours'
        WHEN 4 /* MONTH */ THEN (begins AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC' ELSE $3 END AS ends,
    by_workspace, by_asset, by_pool,
    ARRAY[
        least(sum(attempts), 9e18), least(sum(slot_ms), 9e18), least(sum(cpu_ms), 9e18),
        least(sum(memory_mb_ms), 9e18), least(sum(gpu_ms), 9e18), max(memory_peak_bytes),
        least(sum(read_bytes), 9e18), least(sum(written_bytes), 9e18), least(sum(egress_bytes), 9e18),
        least(sum(compute_pico), 9e18), least(sum(storage_pico), 9e18), least(sum(network_pico), 9e18),
        least(sum(external_pico), 9e18)
    ]::bigint[] AS sums
FROM line
GROUP BY begins, by_workspace, by_asset, by_pool
HAVING $12::timestamptz IS NULL OR (begins, by_workspace, by_asset, by_pool) > ($12, $13, $14, $15)
ORDER BY begins, by_workspace, by_asset, by_pool
LIMIT $16
