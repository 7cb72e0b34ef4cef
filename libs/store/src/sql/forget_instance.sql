-- Removes this instance from those that share the shards. Run by Leases::forget_instance.
SELECT ledger.forget_instance($1, $2)
