-- Deletes all partition rows, which is only correct while the ledger is complete.
-- Run by store::rebuild::delete_partitions.
DELETE FROM scheduler.partitions
