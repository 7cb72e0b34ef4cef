-- Called by whoever must say where a tenant's tasks are admitted.
SELECT address FROM ledger.shards WHERE stream = $1 AND shard = $2 AND lease_until > clock_timestamp()
