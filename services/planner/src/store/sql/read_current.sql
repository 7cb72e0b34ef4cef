-- Called by Deploy with validate_only: what is current, without locking it.
SELECT version, digest FROM planner.current WHERE tenant = $1 AND workspace = $2
