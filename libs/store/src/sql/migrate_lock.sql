-- Called first in every step of the migration, by begin_alone. The lock ends with the transaction, so it works behind
-- a transaction pooler; other migrations may wait for it long, the statements that follow wait for nobody long.
SET LOCAL lock_timeout = '60s';
SELECT pg_advisory_xact_lock(7400);
SET LOCAL lock_timeout = '2s';
SET LOCAL statement_timeout = '60s';
SET LOCAL client_min_messages = 'warning';
