-- Returns the watermark and epoch of a shard while the holder still has its lease. Run by
-- store::shards::find_held.
SELECT watermark, epoch, recorded_at, clock_timestamp() AS now
FROM ledger.shards
WHERE stream = 1 /* execution */ AND shard = $1 AND holder = $2 AND lease_until > clock_timestamp()
