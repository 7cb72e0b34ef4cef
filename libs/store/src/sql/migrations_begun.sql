-- Called by the migration.
SELECT to_regclass('store.migrations') IS NOT NULL
