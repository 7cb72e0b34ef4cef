-- Why: envelopes for workers that receive pushes wait here until they are accepted, with the
-- semantics of Cloud Tasks: a name is known until an hour after its end, a queue has a rate and a
-- limit of pushes in flight.
CREATE TABLE dispatcher.queues (
    queue text COLLATE "C" PRIMARY KEY CHECK (queue <> ''),
    paused boolean NOT NULL DEFAULT false,
    -- The number of pushes allowed now; grows over time at the queue's rate.
    tokens double precision NOT NULL CHECK (tokens >= 0),
    refilled_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);

CREATE TABLE dispatcher.queue_entries (
    queue text COLLATE "C" NOT NULL CHECK (queue <> ''),
    name text COLLATE "C" NOT NULL CHECK (name <> ''),
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    -- servo.v1.QueueEntryState: waiting (2), or accepted, failed or dropped, with only the name
    -- left.
    state smallint NOT NULL CHECK (state BETWEEN 2 AND 5),
    url text NOT NULL,
    body bytea NOT NULL,
    -- The earliest time of the next push; during a push, when its lease expires.
    due_at timestamptz NOT NULL,
    -- The pusher whose push is in flight.
    leased_by uuid,
    tries integer NOT NULL DEFAULT 0 CHECK (tries >= 0),
    -- Why the last push was not accepted.
    fault text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    ended_at timestamptz,
    PRIMARY KEY (queue, name),
    CONSTRAINT what_ended_has_a_time CHECK ((state > 2) = (ended_at IS NOT NULL)),
    CONSTRAINT what_ended_is_not_pushed CHECK (state = 2 OR leased_by IS NULL)
) WITH (fillfactor = 70);
CREATE INDEX queue_entries_due ON dispatcher.queue_entries (queue, due_at) WHERE state = 2;
CREATE INDEX queue_entries_pushed ON dispatcher.queue_entries (queue, due_at) WHERE leased_by IS NOT NULL;
CREATE INDEX queue_entries_ended ON dispatcher.queue_entries (ended_at) WHERE state > 2;

-- Workers that receive pushes do not connect: the dispatcher that admits for them finds them here.
ALTER TABLE dispatcher.workers ADD COLUMN push_url text NOT NULL DEFAULT '';
CREATE INDEX workers_pushed ON dispatcher.workers (tenant) WHERE push_url <> '';
