-- Lists how far every execution shard is folded, and its holder. Run by store::shards::list.
SELECT shard, head, watermark, holder, epoch FROM ledger.shards WHERE stream = 1 /* execution */ ORDER BY shard
