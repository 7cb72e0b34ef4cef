-- Lists the events of a run; its shard, positions and lifetime select few partitions of the ledger.
-- Run by store::events::list_of_run.
SELECT position, event_id, type, version, tenant, workspace, recorded_at, source, idempotency_key, correlation_id,
    causation_id, payload
FROM ledger.events
WHERE stream = 1 /* execution */ AND shard = $1 AND position BETWEEN $2 AND $3 AND correlation_id = $4
    AND recorded_at >= $5 AND recorded_at <= coalesce($6, 'infinity')
ORDER BY position
