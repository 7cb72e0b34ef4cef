-- Lists the events of a workspace in a range of positions of a shard. Row security hides other
-- tenants. Run by store::events::list.
SELECT position, event_id, type, version, tenant, workspace, recorded_at, source, idempotency_key, correlation_id,
    causation_id, payload
FROM ledger.events
WHERE stream = $1 AND shard = $2 AND position > $3 AND position <= $4 AND workspace IN ($5, '')
    AND ($6::smallint IS NULL OR type = $6)
    AND ($7::uuid IS NULL OR correlation_id = $7)
    AND ($8::text IS NULL OR source = $8)
    AND recorded_at >= $9 AND recorded_at < $10
ORDER BY position
LIMIT $11
