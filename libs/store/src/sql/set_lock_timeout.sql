-- Called by Leases, before it waits for one locked row.
SELECT set_config('lock_timeout', $1, true)
