-- Lists the waiting runs that may start now, oldest first. A run past its deadline is about to end
-- and does not block others, nor does a run that is set aside. A run whose shard has no holder
-- counts too and starts when the shard has one. Run by store::limits::list_startable.
SELECT r.run_id
FROM unnest($1::text[], $2::bigint[]) AS a (tenant, most)
CROSS JOIN LATERAL (
    SELECT count(*) AS runs FROM scheduler.runs r
    WHERE r.shard = ANY ($3) AND r.tenant = a.tenant AND r.state < 5 /* open */ AND r.started_at IS NOT NULL
) concurrent
CROSS JOIN LATERAL (
    SELECT r.run_id FROM scheduler.runs r
    WHERE r.shard = ANY ($3) AND r.tenant = a.tenant AND r.state < 5 /* open */ AND r.started_at IS NULL
        AND r.set_aside IS NULL AND (r.deadline IS NULL OR r.deadline > clock_timestamp())
    ORDER BY r.created_at, r.run_number
    LIMIT greatest(a.most - concurrent.runs, 0)
) r
