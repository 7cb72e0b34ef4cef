-- Returns the watermark of a shard and the start time of Postgres. Run by
-- store::shards::watermark_and_start.
SELECT watermark, pg_postmaster_start_time() FROM ledger.shards WHERE stream = 1 /* execution */ AND shard = $1
