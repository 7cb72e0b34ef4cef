-- Called for every new connection, by Generations::greet.
SELECT pg_postmaster_start_time()
