-- Selects the applied migrations. Run by Store::check and by migrate.
SELECT number, checksum FROM store.migrations ORDER BY number
