-- Locks the run limits of these tenants until the transaction ends, so that their runs start one
-- after the other on all instances. The tenants are sorted, which avoids deadlocks. Run by
-- store::limits::lock.
SELECT pg_advisory_xact_lock(hashtextextended(tenant, 0)) FROM unnest($1::text[]) AS tenant
