-- Why: heartbeats and logs are many and no facts: they are kept beside the ledger, written in batches,
-- and only the verdict that a heartbeat was lost is an event.
CREATE TABLE callback.heartbeats (
    attempt_id uuid PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    beat_at timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE callback.logs (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    attempt_id uuid NOT NULL,
    sequence bigint NOT NULL CHECK (sequence >= 0),
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    lines bytea NOT NULL CHECK (octet_length(lines) <= 65536),
    PRIMARY KEY (tenant, workspace, attempt_id, sequence)
);
