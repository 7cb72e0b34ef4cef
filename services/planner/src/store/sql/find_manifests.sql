-- Finds several manifests by digest. Run by store::deployments::find_manifests.
SELECT m.manifest
FROM unnest($1::text[], $2::text[], $3::bytea[]) AS o (tenant, workspace, digest)
JOIN planner.manifests m ON m.tenant = o.tenant AND m.workspace = o.workspace AND m.digest = o.digest
