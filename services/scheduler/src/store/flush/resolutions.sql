-- Value of a flush: applies decisions about quarantined materializations. Run by
-- store::flush::statement.
scheduler.resolve($1, $2, $3, $4, $5, $6, $7)
