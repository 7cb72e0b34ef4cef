-- Stores a deployment. Run by store::deployments::insert.
INSERT INTO planner.deployments (tenant, workspace, deployment_id, version, digest, deployment)
VALUES ($1, $2, $3, $4, $5, $6)
RETURNING created_at
