-- Called by the loop usage: outcomes of attempts between two positions of each shard. Everything up to a head is
-- there, since head and events change in one transaction.
SELECT event.tenant, event.workspace, event.recorded_at, event.payload
FROM unnest($3::smallint[], $4::bigint[], $5::bigint[]) AS span (shard, after, until)
JOIN ledger.events AS event
ON event.stream = $1 AND event.shard = span.shard AND event.position > span.after AND event.position <= span.until
    AND event.type = $2
