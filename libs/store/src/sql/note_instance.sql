-- Records that this instance is alive and counts all that are. Run by Leases::note_instance.
SELECT ledger.note_instance($1, $2, $3)
