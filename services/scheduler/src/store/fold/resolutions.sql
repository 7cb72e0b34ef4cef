-- Behind the last part of a flush: what was decided about quarantined versions.
scheduler.resolve($1, $2, $3, $4, $5, $6, $7)
