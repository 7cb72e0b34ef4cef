-- Called by Leases::acquire, for shards that are free although somebody has locked their rows.
SELECT shard FROM ledger.shards
WHERE stream = $1 AND shard = ANY ($2) AND (lease_until IS NULL OR lease_until <= clock_timestamp())
ORDER BY shard
