-- Behind the last part of a flush that is nothing but claims: should Postgres lose it, their tasks are ready again.
set_config('synchronous_commit', 'off', true)
