-- Called by Leases::release.
SELECT ledger.release($1, $2, $3, $4)
