-- Called by Lane::let_in: the runs that may start now, oldest first. One that is past its deadline is about to end and
-- keeps nobody waiting; one whose shard has no holder starts when it has one.
SELECT r.run_id
FROM unnest($1::text[], $2::bigint[]) AS a (tenant, most)
CROSS JOIN LATERAL (
    SELECT count(*) AS runs FROM scheduler.runs r
    WHERE r.shard = ANY ($3) AND r.tenant = a.tenant AND r.state < 5 AND r.started_at IS NOT NULL
) under_way
CROSS JOIN LATERAL (
    SELECT r.run_id FROM scheduler.runs r
    WHERE r.shard = ANY ($3) AND r.tenant = a.tenant AND r.state < 5 AND r.started_at IS NULL
        AND (r.deadline IS NULL OR r.deadline > clock_timestamp())
    ORDER BY r.created_at, r.run_number
    LIMIT greatest(a.most - under_way.runs, 0)
) r
