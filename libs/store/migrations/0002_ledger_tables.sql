-- Why: every event is one row here, ordered per (stream, shard), and everything else can be rebuilt
-- from it. No login role owns these tables; ledger.append() is the only way to write to them.

-- One row per shard: its last position, its holder, and how far its holder has folded. Narrow and
-- updated in place (HOT): no index on changing columns, free space on the page for new versions.
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

-- recorded_at is in the primary key only because a partitioned table requires it: the lock on the
-- shard's row makes (stream, shard, position) unique.
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

-- Receives events that no daily partition covers, so that an append never fails because a partition
-- is missing.
CREATE TABLE ledger.events_default PARTITION OF ledger.events DEFAULT;

-- Idempotency keys of the last seven days as hashes: 16 bytes of sha256 over (tenant, workspace,
-- key), stored as uuid because the index over that fixed size is a third smaller than over bytea;
-- and over (type, version, payload).
CREATE TABLE ledger.keys (
    hash uuid PRIMARY KEY,
    event_id uuid NOT NULL,
    position bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    stream smallint NOT NULL,
    shard smallint NOT NULL,
    body bytea NOT NULL
);
-- Keys are inserted in the order of time and deleted a day at a time, so a summary per block range
-- finds the old ones and costs an append nothing.
CREATE INDEX keys_by_age ON ledger.keys USING brin (recorded_at) WITH (pages_per_range = 32, autosummarize = on);

-- The roles that may append each event type; filled by every migration from the closed list in
-- libs/model.
CREATE TABLE ledger.writers (
    role name NOT NULL,
    type smallint NOT NULL,
    stream smallint NOT NULL,
    source text NOT NULL,
    one_tenant boolean NOT NULL,
    PRIMARY KEY (role, type)
);

-- The roles that may lease the shards of each stream; filled like ledger.writers.
CREATE TABLE ledger.lessees (
    role name NOT NULL,
    stream smallint NOT NULL,
    PRIMARY KEY (role, stream)
);

-- Archived days, with the number of events that the archive holds.
CREATE TABLE ledger.archives (
    day date PRIMARY KEY,
    events bigint NOT NULL CHECK (events >= 0),
    archived_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
