-- Called by the loops: how far the shards of a stream have come.
SELECT head FROM ledger.shards WHERE stream = $1 ORDER BY shard
