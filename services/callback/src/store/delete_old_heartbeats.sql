-- Deletes some heartbeats that are older than a given age. Run by
-- store::heartbeats::delete_old_heartbeats.
DELETE FROM callback.heartbeats WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM callback.heartbeats WHERE beat_at < clock_timestamp() - make_interval(secs => $1) LIMIT $2))
