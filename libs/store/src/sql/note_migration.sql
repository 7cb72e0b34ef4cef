-- Records an applied migration, in the transaction that applied it. Run by migrate.
INSERT INTO store.migrations (number, name, checksum) VALUES ($1, $2, $3)
