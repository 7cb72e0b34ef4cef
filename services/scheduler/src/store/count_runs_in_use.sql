-- Counts what tenants use of their limits on runs. Open runs are found by shard and tenant, the
-- runs of today by workspace and age, up to the daily limit. The returned time is that of the
-- count: a run that starts because of it starts after everything that it counted as ended. Run by
-- store::limits::count_in_use.
WITH RECURSIVE limited AS (
    SELECT tenant, daily FROM unnest($1::text[], $2::bigint[]) AS a (tenant, daily)
), workspaces (tenant, workspace) AS (
    SELECT a.tenant, (SELECT min(r.workspace) FROM scheduler.runs r WHERE r.tenant = a.tenant)
    FROM limited a WHERE a.daily > 0
    UNION ALL
    SELECT w.tenant, (SELECT min(r.workspace) FROM scheduler.runs r
        WHERE r.tenant = w.tenant AND r.workspace > w.workspace)
    FROM workspaces w WHERE w.workspace IS NOT NULL
)
SELECT a.tenant, open.concurrent, open.waiting, today.runs, clock_timestamp()
FROM limited a
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE r.started_at IS NOT NULL) AS concurrent,
        count(*) FILTER (WHERE r.started_at IS NULL AND r.set_aside IS NULL) AS waiting
    FROM scheduler.runs r
    WHERE r.shard = ANY ($3) AND r.tenant = a.tenant AND r.state < 5 /* open */
) open
CROSS JOIN LATERAL (
    SELECT count(*) AS runs
    FROM (
        SELECT
        FROM workspaces w
        CROSS JOIN LATERAL (
            SELECT FROM scheduler.runs r
            WHERE r.tenant = w.tenant AND r.workspace = w.workspace
                -- Not clock_timestamp(): a volatile function cannot be an index condition.
                AND r.created_at >= date_trunc('day', statement_timestamp(), 'UTC')
        ) r
        WHERE w.tenant = a.tenant
        LIMIT a.daily
    ) counted
) today
