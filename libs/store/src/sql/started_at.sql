-- Selects the server's start time. Run on every new connection, by Generations::check_server.
SELECT pg_postmaster_start_time()
