-- Returns the limits that some tenants or, with NULL, all have set. Run by
-- store::quotas::load_limits.
SELECT tenant, limits FROM quota.tenants LEFT JOIN quota.quotas USING (tenant)
WHERE $1::text[] IS NULL OR tenant = ANY ($1) ORDER BY tenant
