-- Selects the events after a position. The time is a lower bound of their times, so that the query
-- skips earlier partitions. Run by LedgerReader::read.
SELECT position, event_id, type, version, tenant, workspace, recorded_at, source, idempotency_key,
    correlation_id, causation_id, payload
FROM ledger.events
WHERE stream = $1 AND shard = $2 AND position > $3 AND recorded_at >= $4
ORDER BY position
LIMIT $5
