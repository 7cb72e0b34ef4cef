-- Called by the command loop: whether anything was appended to the stream of commands.
SELECT shard, head, watermark FROM ledger.shards WHERE stream = $1 ORDER BY shard
