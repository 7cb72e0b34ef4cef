-- Why: heartbeats and logs are numerous and are not facts: they are stored outside the ledger, in
-- batches, and only the verdict that a heartbeat was lost is an event.
CREATE TABLE callback.heartbeats (
    attempt_id uuid PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    beat_at timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE callback.logs (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    run_id uuid NOT NULL,
    attempt_id uuid NOT NULL,
    -- A hash of the worker process' own name; each process counts its own batches.
    session bigint NOT NULL,
    sequence bigint NOT NULL CHECK (sequence >= 0),
    -- The order in which batches of a run arrived.
    arrival bigint GENERATED ALWAYS AS IDENTITY,
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- servo.v1.AppendLogsRequest with only lines and dropped_lines, encoded.
    lines bytea NOT NULL CHECK (octet_length(lines) <= 1200000),
    PRIMARY KEY (run_id, attempt_id, session, sequence)
);
CREATE INDEX logs_by_arrival ON callback.logs (run_id, arrival);
