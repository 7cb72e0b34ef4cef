-- Called by Keeper::look: which held shards others appended to.
SELECT shard FROM ledger.shards WHERE stream = 1 AND holder = $1 AND head > watermark
