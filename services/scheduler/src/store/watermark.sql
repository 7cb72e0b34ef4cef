-- Called by VerifyProjection: how far a shard is folded.
SELECT watermark FROM ledger.shards WHERE stream = 1 AND shard = $1
