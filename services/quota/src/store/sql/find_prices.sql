-- Finds a tenant's own price list. Run by store::prices::find.
SELECT version, prices FROM quota.prices WHERE tenant = $1
