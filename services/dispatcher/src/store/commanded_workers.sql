-- Called by the command loop.
SELECT tenant, worker_id, command, cut_off_at FROM dispatcher.workers WHERE command <> 0 AND state IN (1, 2, 4)
