-- Called by wait::for_event: whether the event's shard is folded beyond it. Keys lie in the order of their age.
SELECT s.watermark >= k.position
FROM ledger.keys k
JOIN ledger.shards s ON s.stream = k.stream AND s.shard = k.shard
WHERE k.event_id = $1 AND k.recorded_at BETWEEN $2 AND $3
