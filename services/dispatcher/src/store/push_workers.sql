-- Called by the loop that looks for workers which listen for pushes.
SELECT tenant, worker_id, session, info, command, push_url
FROM dispatcher.workers WHERE push_url <> '' AND state IN (1, 2)
