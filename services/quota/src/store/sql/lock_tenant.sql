-- Locks a tenant's settings until the transaction ends, so that changes are serialized. Run by
-- store::quotas::lock.
INSERT INTO quota.tenants (tenant) VALUES ($1) ON CONFLICT (tenant) DO UPDATE
SET tenant = excluded.tenant
