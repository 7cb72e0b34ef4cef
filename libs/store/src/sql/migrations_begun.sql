-- Checks whether the table of migrations exists. Run by migrate.
SELECT to_regclass('store.migrations') IS NOT NULL
