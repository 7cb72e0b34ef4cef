-- Called by LedgerReader::read. No event after the position wanted was recorded before the time given, which
-- spares the query the partitions before it.
SELECT position, event_id, type, version, tenant, workspace, recorded_at, source, idempotency_key,
    correlation_id, causation_id, payload
FROM ledger.events
WHERE stream = $1 AND shard = $2 AND position > $3 AND recorded_at >= $4
ORDER BY position
LIMIT $5
