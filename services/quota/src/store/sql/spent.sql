-- Returns the amount spent of a budget since a time, in millionths of the currency's unit. An empty
-- workspace or an empty list of assets includes all. Run by store::budgets::spent and
-- store::budgets::spent_for_loop.
SELECT least(
    coalesce(sum(compute_pico::numeric + storage_pico + network_pico + external_pico), 0) / 1000000, 9e18)::bigint
FROM quota.usage
WHERE tenant = $1 AND hour >= $2 AND currency = $3 AND ($4 = '' OR workspace = $4)
    AND (cardinality($5::text[]) = 0 OR asset = ANY ($5))
