-- Called by the scheduler's sweep of the bus.
SELECT bus.expire($1, make_interval(secs => $2), $3)
