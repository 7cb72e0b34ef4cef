-- Returns the last position of each shard of a stream. Run by store::ledger::heads.
SELECT head FROM ledger.shards WHERE stream = $1 ORDER BY shard
