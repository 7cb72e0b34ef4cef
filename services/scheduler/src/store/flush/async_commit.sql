-- Value of a flush that contains only claims of pulled tasks: commits asynchronously, because a
-- claim that Postgres loses leaves its task ready. Run by store::flush::statement.
set_config('synchronous_commit', 'off', true)
