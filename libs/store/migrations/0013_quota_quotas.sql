-- Why: the quota service is the authority on limits; a change with a stale version is refused.
CREATE TABLE quota.quotas (
    tenant text COLLATE "C" PRIMARY KEY CHECK (tenant <> ''),
    version bigint NOT NULL CHECK (version > 0),
    -- servo.v1.QuotaLimits as set, encoded.
    limits bytea NOT NULL,
    changed_at timestamptz NOT NULL
);

-- Every tenant that ever had a setting; the tenant "-" is the platform. Its row is locked while one
-- of its settings changes, and is never deleted, so that subscribers to limits also learn of the
-- deletion of the last pool.
CREATE TABLE quota.tenants (
    tenant text COLLATE "C" PRIMARY KEY CHECK (tenant <> ''),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Deleted pools keep their row, so that a name that is used again continues its version numbers.
CREATE TABLE quota.pools (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    pool text COLLATE "C" NOT NULL CHECK (pool <> ''),
    version bigint NOT NULL CHECK (version > 0),
    slots bigint NOT NULL CHECK (slots >= 0),
    description text NOT NULL,
    deleted boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, pool)
);

CREATE TABLE quota.budgets (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    budget_id uuid NOT NULL,
    version bigint NOT NULL CHECK (version > 0),
    name text COLLATE "C" NOT NULL CHECK (name <> ''),
    -- servo.v1.Budget without the fields that other columns hold, encoded.
    budget bytea NOT NULL,
    -- The start of counting, for a budget without periods.
    counts_from timestamptz NOT NULL DEFAULT clock_timestamp(),
    deleted boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, budget_id)
);
CREATE INDEX budgets_by_name ON quota.budgets (tenant, name, budget_id) WHERE NOT deleted;

CREATE TABLE quota.prices (
    tenant text COLLATE "C" PRIMARY KEY CHECK (tenant <> ''),
    version bigint NOT NULL CHECK (version > 0),
    -- servo.v1.PriceList, encoded.
    prices bytea NOT NULL
);

-- The first responses of mutations, for repeated requests.
CREATE TABLE quota.requests (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    request_id text COLLATE "C" NOT NULL CHECK (request_id <> ''),
    -- The sha256 of method and body.
    body bytea NOT NULL CHECK (length(body) = 32),
    answer bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, request_id)
);

-- Expiry scans by age.
CREATE INDEX requests_by_age ON quota.requests (created_at);

-- The usage and cost of attempts, by the hour in which they ended. One row for many attempts: the
-- figures are summed before they are written, and again when they are read.
CREATE TABLE quota.usage (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    hour timestamptz NOT NULL,
    workspace text COLLATE "C" NOT NULL,
    -- Empty when the plan that named it is deleted.
    asset text COLLATE "C" NOT NULL,
    -- Empty for none.
    pool text COLLATE "C" NOT NULL,
    -- The currency of the price list that applied.
    currency text COLLATE "C" NOT NULL,
    attempts bigint NOT NULL,
    slot_ms bigint NOT NULL,
    cpu_ms bigint NOT NULL,
    memory_mb_ms bigint NOT NULL,
    gpu_ms bigint NOT NULL,
    memory_peak_bytes bigint NOT NULL,
    read_bytes bigint NOT NULL,
    written_bytes bigint NOT NULL,
    egress_bytes bigint NOT NULL,
    -- Costs in 10^-12 of the currency's unit, so that small tasks have a cost too.
    compute_pico bigint NOT NULL,
    storage_pico bigint NOT NULL,
    network_pico bigint NOT NULL,
    external_pico bigint NOT NULL,
    PRIMARY KEY (tenant, hour, workspace, asset, pool, currency)
) WITH (fillfactor = 70);

-- The position up to which the execution stream is counted; moved in the transaction that counts.
CREATE TABLE quota.cursors (
    shard smallint PRIMARY KEY CHECK (shard >= 0),
    position bigint NOT NULL CHECK (position >= 0)
) WITH (fillfactor = 50);
