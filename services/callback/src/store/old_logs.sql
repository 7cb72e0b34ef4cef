-- Called by sweep: up to so many batches of lines that were received longer ago than this.
DELETE FROM callback.logs WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM callback.logs WHERE received_at < clock_timestamp() - make_interval(secs => $1) LIMIT $2))
