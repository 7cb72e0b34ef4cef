-- Returns the last heartbeats of several attempts. Run by store::heartbeats::list_last.
SELECT attempt_id, beat_at FROM callback.heartbeats WHERE attempt_id = ANY ($1)
