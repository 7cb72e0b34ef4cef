-- Called by WatchRun: how far a shard is folded, and under which Postgres.
SELECT watermark, pg_postmaster_start_time() FROM ledger.shards WHERE stream = 1 AND shard = $1
