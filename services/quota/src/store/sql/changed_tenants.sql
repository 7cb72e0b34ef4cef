-- Returns the tenants whose settings changed between two positions of each shard. The lateral join
-- runs once per span: OFFSET 0 keeps Postgres from joining in another way, because a plan from
-- before the table grew would read the whole table. Run by store::ledger::changed_tenants.
SELECT DISTINCT event.tenant
FROM unnest($2::smallint[], $3::bigint[], $4::bigint[]) AS span (shard, after, head)
CROSS JOIN LATERAL (
    SELECT tenant
    FROM ledger.events
    WHERE stream = $1 AND shard = span.shard AND position > span.after AND position <= span.head
    OFFSET 0
) AS event
