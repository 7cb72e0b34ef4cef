-- Why: a plan is a value, stored once under its own hash, and a run names the plan and the deployment
-- it came from; both must outlive the planner that made them.
CREATE TABLE planner.deployments (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    deployment_id uuid NOT NULL,
    digest bytea NOT NULL CHECK (length(digest) = 32),
    manifest bytea NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, workspace, deployment_id)
);

CREATE TABLE planner.plans (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    plan_id bytea NOT NULL CHECK (length(plan_id) = 32),
    plan bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, workspace, plan_id)
);
