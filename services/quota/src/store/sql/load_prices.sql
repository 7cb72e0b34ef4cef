-- Returns the price lists of some tenants. Run by store::usage::load_prices.
SELECT tenant, prices FROM quota.prices WHERE tenant = ANY ($1)
