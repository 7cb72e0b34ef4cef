-- Creates the ledger's missing partitions. Run by migrate.
SELECT ledger.make_partitions($1)
