-- Why: runs and tasks are read most often and written most often by the fold. Hot rows stay narrow
-- and have no foreign keys; the invariant checker verifies the references. States are servo.v1's
-- numbers.
CREATE TABLE scheduler.runs (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    -- An HMAC over tenant, workspace and key, hence globally unique.
    run_id uuid PRIMARY KEY,
    -- Derived from shard and position of the run's first event, so that a rebuild computes the same
    -- number.
    run_number bigint NOT NULL UNIQUE,
    shard smallint NOT NULL,
    state smallint NOT NULL CHECK (state BETWEEN 1 AND 8),
    reason smallint NOT NULL,
    -- Set once the run is being stopped: 1 by a principal, 2 by a deadline.
    stopped_by smallint CHECK (stopped_by BETWEEN 1 AND 2),
    version bigint NOT NULL CHECK (version >= 0),
    generation integer NOT NULL CHECK (generation > 0),
    run_key text COLLATE "C" NOT NULL CHECK (run_key <> ''),
    -- servo.v1.Event with the RunRequested, encoded.
    request bytea NOT NULL,
    request_event_id uuid NOT NULL,
    plan_id bytea CHECK (length(plan_id) = 32),
    plan_fingerprint text,
    deployment_id text,
    -- The number of tasks per state, once the run has ended; before that, readers count the tasks.
    counts integer[],
    error text,
    error_ordinal integer,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    started_at timestamptz,
    ended_at timestamptz,
    deadline timestamptz
) WITH (fillfactor = 70);
CREATE INDEX runs_by_age ON scheduler.runs (tenant, workspace, created_at, run_number);
-- A new holder of a shard loads these runs.
CREATE INDEX runs_open ON scheduler.runs (shard) WHERE state < 5;

CREATE TABLE scheduler.tasks (
    run_number bigint NOT NULL,
    ordinal integer NOT NULL CHECK (ordinal >= 0),
    -- The item of a mapped child; -1 for a task of the plan.
    item integer NOT NULL DEFAULT -1 CHECK (item >= -1),
    attempt integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    state smallint NOT NULL CHECK (state BETWEEN 1 AND 11),
    reason smallint NOT NULL,
    cancelling boolean NOT NULL DEFAULT false,
    pushed boolean NOT NULL DEFAULT false,
    changed_at timestamptz NOT NULL,
    ready_at timestamptz,
    claimed_at timestamptz,
    started_at timestamptz,
    ended_at timestamptz,
    due_at timestamptz,
    attempt_id uuid,
    worker_id uuid,
    -- A hash of the worker process' own name.
    session bigint,
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    -- servo.v1.TaskError of the latest failure, encoded.
    error bytea,
    -- servo.v1.MappedItems for the tasks that are mapped over this one, encoded.
    items bytea,
    PRIMARY KEY (run_number, ordinal, item)
) WITH (fillfactor = 60);

-- Every version of data that an attempt wrote; an attempt may write several assets.
CREATE TABLE scheduler.materializations (
    attempt_id uuid NOT NULL,
    asset_key text COLLATE "C" NOT NULL,
    partition_key text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    run_number bigint NOT NULL,
    ordinal integer NOT NULL,
    item integer NOT NULL,
    state smallint NOT NULL CHECK (state BETWEEN 1 AND 5),
    version bigint NOT NULL DEFAULT 0 CHECK (version >= 0),
    recorded_at timestamptz NOT NULL,
    promoted_at timestamptz,
    -- servo.v1.Output, encoded.
    output bytea NOT NULL,
    PRIMARY KEY (attempt_id, asset_key)
) WITH (fillfactor = 90);
CREATE INDEX materializations_by_asset
    ON scheduler.materializations (tenant, workspace, asset_key, partition_key, recorded_at);

-- The state of each partition: its last attempt, and the version that readers get.
CREATE TABLE scheduler.partitions (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    asset_key text COLLATE "C" NOT NULL,
    partition_key text COLLATE "C" NOT NULL,
    attempt_id uuid NOT NULL,
    attempted_at timestamptz NOT NULL,
    attempt_run bigint NOT NULL,
    attempt_state smallint NOT NULL,
    materialization_id uuid,
    materialized_at timestamptz,
    materialized_run bigint,
    code_version text,
    PRIMARY KEY (tenant, workspace, asset_key, partition_key)
) WITH (fillfactor = 60);

-- Requests with the run key of a different request, which did not become a run.
CREATE TABLE scheduler.run_key_conflicts (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    event_id uuid NOT NULL,
    run_id uuid NOT NULL,
    request bytea NOT NULL,
    recorded_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, workspace, event_id)
);
