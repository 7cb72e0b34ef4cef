-- Why: the gateway identifies every caller, so it stores the tenants and their workspaces.
CREATE TABLE gateway.tenants (
    tenant text COLLATE "C" PRIMARY KEY CHECK (tenant <> ''),
    state smallint NOT NULL CHECK (state BETWEEN 1 AND 2),
    version bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE gateway.workspaces (
    tenant text COLLATE "C" NOT NULL REFERENCES gateway.tenants,
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    state smallint NOT NULL CHECK (state BETWEEN 1 AND 2),
    version bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, workspace)
);
