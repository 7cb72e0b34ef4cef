-- Selects free shards, including those whose rows are locked. Run by Leases::acquire.
SELECT shard FROM ledger.shards
WHERE stream = $1 AND shard = ANY ($2) AND (lease_until IS NULL OR lease_until <= clock_timestamp())
ORDER BY shard
