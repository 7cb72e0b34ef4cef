-- Returns the outcomes of attempts between two positions of each shard. All events up to a head are
-- visible, because head and events change in one transaction. The lateral join runs once per span:
-- OFFSET 0 keeps Postgres from joining in another way, because a plan from before the table grew
-- would read the whole table. Run by store::usage::finished_attempts.
SELECT event.tenant, event.workspace, event.recorded_at, event.payload
FROM unnest($3::smallint[], $4::bigint[], $5::bigint[]) AS span (shard, after, until)
CROSS JOIN LATERAL (
    SELECT tenant, workspace, recorded_at, payload
    FROM ledger.events
    WHERE stream = $1 AND shard = span.shard AND position > span.after AND position <= span.until AND type = $2
    OFFSET 0
) AS event
