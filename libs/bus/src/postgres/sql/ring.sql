-- Called by Listeners, never within the transaction that publishes: NOTIFY holds a lock over all commits.
SELECT pg_notify($1, $2)
