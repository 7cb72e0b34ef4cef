-- Called by LoopStore::holders.
SELECT shard, holder, address, epoch FROM ledger.shards
WHERE stream = $1 AND lease_until > clock_timestamp()
ORDER BY shard
