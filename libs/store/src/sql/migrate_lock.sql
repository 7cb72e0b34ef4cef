-- Takes the migration lock and sets timeouts. The lock ends with the transaction, so it works
-- behind a transaction pooler; other migrations may wait for it long, but the later statements wait
-- for locks only briefly. Run first in every step of a migration, by begin_exclusive.
SET LOCAL lock_timeout = '60s';
SELECT pg_advisory_xact_lock(7400);
SET LOCAL lock_timeout = '2s';
SET LOCAL statement_timeout = '60s';
SET LOCAL client_min_messages = 'warning';
