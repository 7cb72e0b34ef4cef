-- Returns how far a shard is folded. Run by store::shards::watermark.
SELECT watermark FROM ledger.shards WHERE stream = 1 /* execution */ AND shard = $1
