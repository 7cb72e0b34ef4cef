-- Why: everything that happened is one row here, in one order per (stream, shard), and everything else
-- can be rebuilt from it. Nobody who logs in owns these tables; ledger.append() is the only way in.

-- One row per shard: the end of its order, who holds it, and how far its holder has folded.
-- Narrow and updated in place (HOT): no index on what changes, room on the page for new versions.
CREATE TABLE ledger.shards (
    stream smallint NOT NULL,
    shard smallint NOT NULL CHECK (shard >= 0),
    head bigint NOT NULL DEFAULT 0,
    recorded_at timestamptz NOT NULL DEFAULT 'epoch',
    epoch bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    watermark bigint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    holder text,
    address text,
    PRIMARY KEY (stream, shard),
    CONSTRAINT watermark_within_head CHECK (watermark BETWEEN 0 AND head),
    CONSTRAINT lease_is_whole CHECK (
        (holder IS NULL) = (lease_until IS NULL) AND (holder IS NULL) = (address IS NULL)
    )
) WITH (fillfactor = 10);

-- recorded_at stands in the primary key only because a partitioned table demands it: the lock on the
-- shard's row is what makes (stream, shard, position) unique.
CREATE TABLE ledger.events (
    stream smallint NOT NULL,
    shard smallint NOT NULL,
    type smallint NOT NULL,
    version smallint NOT NULL CONSTRAINT version_is_positive CHECK (version > 0),
    position bigint NOT NULL CHECK (position > 0),
    recorded_at timestamptz NOT NULL,
    event_id uuid NOT NULL,
    correlation_id uuid,
    causation_id uuid,
    tenant text COLLATE "C" NOT NULL CONSTRAINT tenant_is_named CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL
        CONSTRAINT idempotency_key_1_to_1024_bytes CHECK (octet_length(idempotency_key) BETWEEN 1 AND 1024),
    payload bytea NOT NULL CONSTRAINT payload_65536_bytes_max CHECK (octet_length(payload) <= 65536),
    PRIMARY KEY (stream, shard, position, recorded_at)
) PARTITION BY RANGE (recorded_at);

-- Takes what no daily partition takes, so that an append never fails for want of one.
CREATE TABLE ledger.events_default PARTITION OF ledger.events DEFAULT;

-- Idempotency keys of the last seven days as hashes: 16 bytes of sha256 over (tenant, workspace, key), kept as
-- uuid because Postgres' index over that fixed size is a third smaller than over bytea; and over (type, version, payload).
CREATE TABLE ledger.keys (
    hash uuid PRIMARY KEY,
    event_id uuid NOT NULL,
    position bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    stream smallint NOT NULL,
    shard smallint NOT NULL,
    body bytea NOT NULL
);
-- Keys come in the order of time and go a day's worth at once, so a summary per block range finds the old ones, and
-- costs an append nothing.
CREATE INDEX keys_by_age ON ledger.keys USING brin (recorded_at) WITH (pages_per_range = 32, autosummarize = on);

-- Who may append which event type; filled by every migration from the closed list in libs/model.
CREATE TABLE ledger.writers (
    role name NOT NULL,
    type smallint NOT NULL,
    stream smallint NOT NULL,
    source text NOT NULL,
    one_tenant boolean NOT NULL,
    PRIMARY KEY (role, type)
);

-- Who may lease the shards of which stream; filled like ledger.writers.
CREATE TABLE ledger.lessees (
    role name NOT NULL,
    stream smallint NOT NULL,
    PRIMARY KEY (role, stream)
);

-- Days whose events were archived, with the count the archive holds.
CREATE TABLE ledger.archives (
    day date PRIMARY KEY,
    events bigint NOT NULL CHECK (events >= 0),
    archived_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
