-- Called for a run of which an event cannot be folded, in the transaction that passes the event.
UPDATE scheduler.runs SET set_aside = $3 WHERE run_id = $1 AND tenant = $2 AND set_aside IS NULL
