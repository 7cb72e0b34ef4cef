-- Why: a backfill is planned chunk by chunk within its concurrency, and a chunk that is processed
-- twice takes effect once.
CREATE TABLE backfill.backfills (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    backfill_id uuid NOT NULL,
    version bigint NOT NULL CHECK (version > 0),
    state smallint NOT NULL CHECK (state BETWEEN 1 AND 6),
    definition bytea NOT NULL,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, workspace, backfill_id)
);

CREATE TABLE backfill.chunks (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    backfill_id uuid NOT NULL,
    chunk integer NOT NULL CHECK (chunk >= 0),
    state smallint NOT NULL CHECK (state BETWEEN 1 AND 5),
    run_id uuid,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, workspace, backfill_id, chunk),
    FOREIGN KEY (tenant, workspace, backfill_id) REFERENCES backfill.backfills
);
