-- Deletes old messages that every subscription has passed. Run by statements::expire.
SELECT bus.expire($1, make_interval(secs => $2), $3)
