-- Lists the held shards that another service appended to. Run by store::shards::list_behind.
SELECT shard FROM ledger.shards WHERE stream = 1 /* execution */ AND holder = $1 AND head > watermark
