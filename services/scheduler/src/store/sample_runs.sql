-- Lists the newest runs of each of these shards. Run by store::runs::sample.
SELECT r.run_number
FROM unnest($1::smallint[]) AS w (shard)
CROSS JOIN LATERAL (
    SELECT run_number FROM scheduler.runs WHERE shard = w.shard ORDER BY run_number DESC LIMIT $2
) r
