-- Lists the workers that have a command and have not left. Run by
-- store::workers::commanded_workers.
SELECT tenant, worker_id, command, cut_off_at FROM dispatcher.workers
WHERE command <> 0 AND state IN (1 /* ACTIVE */, 2 /* DRAINING */, 4 /* LOST */)
