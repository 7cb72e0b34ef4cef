-- Called by the loop usage: outcomes of attempts between two positions of each shard. Everything up to a head is
-- there, since head and events change in one transaction. Looked up span by span (OFFSET keeps the planner from joining
-- in another way): a plan from before the table grew would read all of it.
SELECT event.tenant, event.workspace, event.recorded_at, event.payload
FROM unnest($3::smallint[], $4::bigint[], $5::bigint[]) AS span (shard, after, until)
CROSS JOIN LATERAL (
    SELECT tenant, workspace, recorded_at, payload
    FROM ledger.events
    WHERE stream = $1 AND shard = span.shard AND position > span.after AND position <= span.until AND type = $2
    OFFSET 0
) AS event
