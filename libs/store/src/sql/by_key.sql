-- Selects the event with an idempotency key, which is kept for seven days. Run by
-- LedgerReader::by_key.
SELECT e.position, e.event_id, e.type, e.version, e.tenant, e.workspace, e.recorded_at, e.source, e.idempotency_key,
    e.correlation_id, e.causation_id, e.payload
FROM ledger.keys k
JOIN ledger.events e
    ON e.stream = k.stream AND e.shard = k.shard AND e.position = k.position AND e.recorded_at = k.recorded_at
WHERE k.hash = $1
