-- Called by ListEvents: where a shard ends.
SELECT head FROM ledger.shards WHERE stream = $1 AND shard = $2
