-- Creates the ledger partitions of the next days. Run by store::sweeps::create_partitions.
SELECT ledger.make_partitions($1)
