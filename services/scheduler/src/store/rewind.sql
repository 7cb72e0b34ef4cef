-- Called by rebuild::empty.
SELECT ledger.rewind($1, $2, $3, $4)
