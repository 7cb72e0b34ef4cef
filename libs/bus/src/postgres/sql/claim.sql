-- Leases the next messages of a subscription. Run by statements::claim.
SELECT shard, position, place, tries, key, tenant, workspace, published_at, payload
FROM bus.claim($1, $2, $3, make_interval(secs => $4), $5)
