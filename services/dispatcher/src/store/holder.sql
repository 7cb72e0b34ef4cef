-- Reads the address of a shard's holder. Run by store::shards::holder.
SELECT address FROM ledger.shards WHERE stream = $1 AND shard = $2 AND lease_until > clock_timestamp()
