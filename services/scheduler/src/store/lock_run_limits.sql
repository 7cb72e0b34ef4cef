-- Called by Lane::count_runs: whoever lets runs of these tenants start does so one after the other. The tenants come
-- sorted; the lock ends with the transaction.
SELECT pg_advisory_xact_lock(hashtextextended(tenant, 0)) FROM unnest($1::text[]) AS tenant
