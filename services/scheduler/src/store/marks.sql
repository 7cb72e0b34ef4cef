-- Called by Lane::marks: how far shards are that the holder still holds.
SELECT shard, head, watermark, epoch, recorded_at, clock_timestamp()
FROM ledger.shards
WHERE stream = 1 AND shard = ANY ($1) AND holder = $2 AND lease_until > clock_timestamp()
