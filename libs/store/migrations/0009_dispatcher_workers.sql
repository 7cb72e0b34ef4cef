-- Why: a worker is drained or killed by name, also by an instance it is not connected to.
CREATE TABLE dispatcher.workers (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    worker_id uuid NOT NULL,
    name text NOT NULL CHECK (name <> ''),
    state smallint NOT NULL CHECK (state BETWEEN 1 AND 4),
    slots integer NOT NULL CHECK (slots > 0),
    registered_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, worker_id)
) WITH (fillfactor = 70);
