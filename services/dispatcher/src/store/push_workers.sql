-- Lists the workers that receive pushes. Run by store::workers::push_workers.
SELECT tenant, worker_id, session, info, command, push_url
FROM dispatcher.workers WHERE push_url <> '' AND state IN (1 /* ACTIVE */, 2 /* DRAINING */)
