-- Called by Store::check and by the migration.
SELECT number, checksum FROM store.migrations ORDER BY number
