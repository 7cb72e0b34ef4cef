-- Why: a tick runs the schedule's definition at tick time, and a tick that is processed twice takes
-- effect once: the definition is stored by version and the tick by (schedule, due time).
CREATE TABLE automation.schedules (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    schedule_id uuid NOT NULL,
    version bigint NOT NULL CHECK (version > 0),
    state smallint NOT NULL CHECK (state BETWEEN 1 AND 3),
    definition bytea NOT NULL,
    next_tick_at timestamptz,
    PRIMARY KEY (tenant, workspace, schedule_id)
);

CREATE TABLE automation.ticks (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    schedule_id uuid NOT NULL,
    due_at timestamptz NOT NULL,
    schedule_version bigint NOT NULL CHECK (schedule_version > 0),
    state smallint NOT NULL CHECK (state BETWEEN 1 AND 4),
    run_id uuid,
    recorded_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, workspace, schedule_id, due_at),
    FOREIGN KEY (tenant, workspace, schedule_id) REFERENCES automation.schedules
);
