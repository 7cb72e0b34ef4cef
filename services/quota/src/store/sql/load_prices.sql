-- Called by the loop usage.
SELECT tenant, prices FROM quota.prices WHERE tenant = ANY ($1)
