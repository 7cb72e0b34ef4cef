-- Why: a service must be able to check, before it serves, that the schema it was built for exists,
-- and a migration that was edited after it ran must be detected instead of silently having two
-- meanings.
CREATE TABLE store.migrations (
    number integer PRIMARY KEY CHECK (number > 0),
    name text NOT NULL UNIQUE,
    checksum bytea NOT NULL CHECK (length(checksum) = 32),
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
