-- Deletes some batches of log lines that are older than a given age. Run by
-- store::logs::delete_old_logs.
DELETE FROM callback.logs WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM callback.logs WHERE received_at < clock_timestamp() - make_interval(secs => $1) LIMIT $2))
