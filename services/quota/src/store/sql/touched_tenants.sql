-- Called by the loop limits: whose settings changed between two looks.
SELECT DISTINCT event.tenant
FROM unnest($2::smallint[], $3::bigint[], $4::bigint[]) AS span (shard, after, head)
JOIN ledger.events AS event
ON event.stream = $1 AND event.shard = span.shard AND event.position > span.after AND event.position <= span.head
