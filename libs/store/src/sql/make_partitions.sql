-- Called by the migration.
SELECT ledger.make_partitions($1)
