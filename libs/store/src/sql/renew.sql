-- Extends leases. Run by Leases::renew.
SELECT shard FROM ledger.renew($1, $2, $3, $4, $5, $6)
