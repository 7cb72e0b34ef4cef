-- Deletes a batch of expired idempotency keys. Run by store::sweeps::expire_keys.
SELECT ledger.expire_keys($1)
