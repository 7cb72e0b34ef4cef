-- Called by ListProjections: how far every shard is folded, and by whom.
SELECT shard, head, watermark, holder, epoch FROM ledger.shards WHERE stream = 1 ORDER BY shard
