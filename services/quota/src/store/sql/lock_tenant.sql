-- Called first by every mutation: changes of one tenant's settings come one after the other.
INSERT INTO quota.tenants (tenant) VALUES ($1) ON CONFLICT (tenant) DO UPDATE
SET tenant = excluded.tenant
