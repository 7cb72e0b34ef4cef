-- Why: quota is the authority on limits; a change with a stale version is refused.
CREATE TABLE quota.quotas (
    tenant text COLLATE "C" PRIMARY KEY CHECK (tenant <> ''),
    version bigint NOT NULL CHECK (version > 0),
    limits bytea NOT NULL,
    changed_at timestamptz NOT NULL
);
