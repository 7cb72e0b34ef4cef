-- Called by the migration, in the transaction that applied it.
INSERT INTO store.migrations (number, name, checksum) VALUES ($1, $2, $3)
