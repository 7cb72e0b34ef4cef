-- Selects the current holders of a stream's shards. Run by LoopStore::holders.
SELECT shard, holder, address, epoch FROM ledger.shards
WHERE stream = $1 AND lease_until > clock_timestamp()
ORDER BY shard
