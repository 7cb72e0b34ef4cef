-- Called by the loop limits: whose settings changed between two looks. Looked up span by span (OFFSET keeps the planner
-- from joining in another way): a plan from before the table grew would read all of it.
SELECT DISTINCT event.tenant
FROM unnest($2::smallint[], $3::bigint[], $4::bigint[]) AS span (shard, after, head)
CROSS JOIN LATERAL (
    SELECT tenant
    FROM ledger.events
    WHERE stream = $1 AND shard = span.shard AND position > span.after AND position <= span.head
    OFFSET 0
) AS event
