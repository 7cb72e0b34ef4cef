-- Why: runs and tasks are what everybody asks for, and what the fold writes most. Hot rows stay narrow and
-- carry no foreign keys; the invariant checker proves what those would. States are servo.v1's numbers.
CREATE TABLE scheduler.runs (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    run_id uuid NOT NULL,
    -- Derived from shard and position of the run's first event, so that a rebuild finds the same number.
    run_number bigint NOT NULL UNIQUE,
    state smallint NOT NULL CHECK (state BETWEEN 1 AND 8),
    reason smallint NOT NULL,
    plan_id bytea CHECK (length(plan_id) = 32),
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, workspace, run_id)
) WITH (fillfactor = 70);

CREATE TABLE scheduler.tasks (
    run_number bigint NOT NULL,
    ordinal integer NOT NULL CHECK (ordinal >= 0),
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    state smallint NOT NULL CHECK (state BETWEEN 1 AND 11),
    reason smallint NOT NULL,
    attempt integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    attempt_id uuid,
    changed_at timestamptz NOT NULL,
    due_at timestamptz,
    PRIMARY KEY (run_number, ordinal)
) WITH (fillfactor = 70);

-- The same key with the same fingerprint is the same run.
CREATE TABLE scheduler.run_keys (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    run_key text COLLATE "C" NOT NULL CHECK (run_key <> ''),
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    run_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, workspace, run_key)
);
