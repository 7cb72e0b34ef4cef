-- Limits the wait for one locked row. Run by Leases::begin_waiting.
SELECT set_config('lock_timeout', $1, true)
