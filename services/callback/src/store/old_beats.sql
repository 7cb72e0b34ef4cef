-- Called by sweep: up to so many attempts that beat last longer ago than this.
DELETE FROM callback.heartbeats WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM callback.heartbeats WHERE beat_at < clock_timestamp() - make_interval(secs => $1) LIMIT $2))
