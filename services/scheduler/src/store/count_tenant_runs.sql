-- Counts what a tenant uses of its limits on runs. Open runs are found by shard and tenant, the
-- runs of today by workspace and age, up to a maximum. Runs of backfills are those whose key is in
-- the backfill key space. Run by store::limits::count_tenant_runs.
WITH RECURSIVE workspaces (workspace) AS (
    SELECT (SELECT min(r.workspace) FROM scheduler.runs r WHERE r.tenant = $1)
    UNION ALL
    SELECT (SELECT min(r.workspace) FROM scheduler.runs r WHERE r.tenant = $1 AND r.workspace > w.workspace)
    FROM workspaces w WHERE w.workspace IS NOT NULL
), today AS (
    SELECT
    FROM workspaces w
    CROSS JOIN LATERAL (
        SELECT FROM scheduler.runs r
        WHERE r.tenant = $1 AND r.workspace = w.workspace
            -- Not clock_timestamp(): a volatile function cannot be an index condition.
            AND r.created_at >= date_trunc('day', statement_timestamp(), 'UTC')
    ) r
    LIMIT $3
)
SELECT count(*) FILTER (WHERE r.started_at IS NOT NULL),
    count(*) FILTER (WHERE r.started_at IS NULL AND r.set_aside IS NULL),
    (SELECT count(*) FROM today),
    count(*) FILTER (WHERE r.started_at IS NOT NULL AND starts_with(r.run_key, 'backfill:'))
FROM scheduler.runs r
WHERE r.shard = ANY ($2) AND r.tenant = $1 AND r.state < 5 /* open */
