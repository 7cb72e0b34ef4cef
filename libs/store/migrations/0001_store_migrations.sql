-- Why: a service must be able to tell, before it serves, whether the schema it was built for is there,
-- and a migration that was edited after it ran must be noticed instead of silently meaning two things.
CREATE TABLE store.migrations (
    number integer PRIMARY KEY CHECK (number > 0),
    name text NOT NULL UNIQUE,
    checksum bytea NOT NULL CHECK (length(checksum) = 32),
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
