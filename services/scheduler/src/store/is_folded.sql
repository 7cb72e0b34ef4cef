-- Tells whether the shard of an event is folded beyond it. The time range selects the partitions of
-- ledger.keys. Run by store::events::is_folded.
SELECT s.watermark >= k.position
FROM ledger.keys k
JOIN ledger.shards s ON s.stream = k.stream AND s.shard = k.shard
WHERE k.event_id = $1 AND k.recorded_at BETWEEN $2 AND $3
