-- Why: a plan is a value, stored once under its own hash, and a run references its plan and its
-- deployment; both must outlive the planner that made them.

-- The deployed manifests, stored once per content.
CREATE TABLE planner.manifests (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    digest bytea NOT NULL CHECK (length(digest) = 32),
    -- servo.v1.Manifest in its canonical order.
    manifest bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, workspace, digest)
);

-- Every registration of a deployment. Rows never change.
CREATE TABLE planner.deployments (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    deployment_id uuid NOT NULL,
    version bigint NOT NULL CHECK (version > 0),
    digest bytea NOT NULL CHECK (length(digest) = 32),
    -- servo.v1.Deployment without the fields that other columns hold.
    deployment bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, workspace, deployment_id),
    UNIQUE (tenant, workspace, version)
);

-- The active deployment: one row per workspace, locked while one deployment replaces another.
CREATE TABLE planner.current (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    version bigint NOT NULL DEFAULT 0 CHECK (version >= 0),
    deployment_id uuid,
    digest bytea CHECK (length(digest) = 32),
    PRIMARY KEY (tenant, workspace),
    CHECK ((version = 0) = (deployment_id IS NULL) AND (version = 0) = (digest IS NULL))
);

-- The first responses of mutations, for repeated requests.
CREATE TABLE planner.requests (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    request_id text COLLATE "C" NOT NULL CHECK (request_id <> ''),
    -- The sha256 of method and body.
    body bytea NOT NULL CHECK (length(body) = 32),
    answer bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, workspace, request_id)
);

-- Expiry scans by age.
CREATE INDEX requests_by_age ON planner.requests (created_at);

CREATE TABLE planner.plans (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    plan_id bytea NOT NULL CHECK (length(plan_id) = 32),
    -- servo.v1.Plan.
    plan bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, workspace, plan_id)
);

-- A set of dynamic partitions; its row is locked while it changes.
CREATE TABLE planner.partition_sets (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    set_name text COLLATE "C" NOT NULL CHECK (set_name <> ''),
    version bigint NOT NULL DEFAULT 0 CHECK (version >= 0),
    -- The ordinal of the value added last.
    last_ordinal bigint NOT NULL DEFAULT 0 CHECK (last_ordinal >= 0),
    value_count bigint NOT NULL DEFAULT 0 CHECK (value_count >= 0),
    PRIMARY KEY (tenant, workspace, set_name)
);

CREATE TABLE planner.partition_values (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    set_name text COLLATE "C" NOT NULL CHECK (set_name <> ''),
    value text COLLATE "C" NOT NULL,
    -- The order in which values were added.
    ordinal bigint NOT NULL CHECK (ordinal > 0),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, workspace, set_name, value),
    UNIQUE (tenant, workspace, set_name, ordinal)
);

-- The artifacts of each tenant. The bytes are in the artifact directory.
CREATE TABLE planner.artifacts (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    digest bytea NOT NULL CHECK (length(digest) = 32),
    kind smallint NOT NULL CHECK (kind BETWEEN 1 AND 3),
    byte_size bigint NOT NULL CHECK (byte_size >= 0),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, workspace, digest)
);
