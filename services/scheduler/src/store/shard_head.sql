-- Returns the head of a shard of any stream. Run by store::events::head.
SELECT head FROM ledger.shards WHERE stream = $1 AND shard = $2
