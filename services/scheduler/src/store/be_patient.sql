-- Called by rebuild, before every statement that goes over all that there is.
SELECT set_config('statement_timeout', $1, true)
