-- Releases a shard. Run by Leases::release.
SELECT ledger.release($1, $2, $3, $4)
