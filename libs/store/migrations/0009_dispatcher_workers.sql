-- Why: a worker is drained or killed by name, also through an instance that it is not connected to;
-- a pause must survive the instance that received it; and instances must know each other to share
-- the admission shards.
CREATE TABLE dispatcher.workers (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    worker_id uuid NOT NULL,
    name text NOT NULL CHECK (name <> ''),
    state smallint NOT NULL CHECK (state BETWEEN 1 AND 4),
    -- The process that registered last; only it may pull.
    session text NOT NULL CHECK (session <> ''),
    -- servo.v1.WorkerInfo, encoded.
    info bytea NOT NULL,
    active_attempts integer NOT NULL DEFAULT 0 CHECK (active_attempts >= 0),
    -- The last command (servo.v1.WorkerCommand), the number of commands, and the event of the last
    -- one.
    command smallint NOT NULL DEFAULT 0 CHECK (command BETWEEN 0 AND 2),
    version bigint NOT NULL DEFAULT 0 CHECK (version >= 0),
    event_id uuid,
    cut_off_at timestamptz,
    registered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, worker_id),
    CONSTRAINT commands_are_events CHECK ((version = 0) = (event_id IS NULL))
) WITH (fillfactor = 70);

-- The tenant "-" means all tenants. An ended pause keeps its row, because its version numbers
-- continue.
CREATE TABLE dispatcher.pauses (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    pause_id text COLLATE "C" NOT NULL CHECK (pause_id <> ''),
    workspace text COLLATE "C" NOT NULL,
    pool text COLLATE "C" NOT NULL,
    active boolean NOT NULL,
    version bigint NOT NULL CHECK (version > 0),
    event_id uuid NOT NULL,
    principal text NOT NULL,
    comment text NOT NULL,
    started_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, pause_id)
);
