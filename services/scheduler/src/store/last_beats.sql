-- Called by Lane::last_beats.
SELECT attempt_id, beat_at FROM callback.heartbeats WHERE attempt_id = ANY ($1)
