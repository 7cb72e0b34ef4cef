-- Reads head and watermark of every shard, to detect new commands. Run by store::shards::heads.
SELECT shard, head, watermark FROM ledger.shards WHERE stream = $1 ORDER BY shard
