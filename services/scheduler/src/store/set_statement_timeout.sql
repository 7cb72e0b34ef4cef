-- Raises the statement timeout of the transaction, because a rebuild runs statements over whole
-- tables. Run by store::rebuild::set_statement_timeout.
SELECT set_config('statement_timeout', $1, true)
