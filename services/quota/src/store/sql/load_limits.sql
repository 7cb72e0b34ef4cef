-- Called by the loop limits, for some tenants or, with NULL, for all.
SELECT tenant, limits FROM quota.tenants LEFT JOIN quota.quotas USING (tenant)
WHERE $1::text[] IS NULL OR tenant = ANY ($1) ORDER BY tenant
