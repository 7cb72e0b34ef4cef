-- Called by rebuild, while the ledger is whole.
DELETE FROM scheduler.partitions
