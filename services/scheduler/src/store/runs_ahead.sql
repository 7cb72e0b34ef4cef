-- Counts the started runs of a tenant and the waiting runs ahead of one run, and names some started
-- runs. Run by store::limits::runs_ahead.
SELECT count(*) FILTER (WHERE r.started_at IS NOT NULL),
    count(*) FILTER (WHERE r.started_at IS NULL AND r.set_aside IS NULL AND (r.created_at, r.run_number) < (own.created_at, own.run_number)),
    coalesce((array_agg(r.run_id ORDER BY r.started_at) FILTER (WHERE r.started_at IS NOT NULL))[:$4], '{}')
FROM scheduler.runs own
JOIN scheduler.runs r ON r.tenant = own.tenant AND r.shard = ANY ($2) AND r.state < 5 /* open */
WHERE own.tenant = $1 AND own.run_number = $3
