-- Returns the last heartbeat of an attempt and its progress. Run by
-- store::heartbeats::last_with_progress.
SELECT beat_at, progress_ppm, progress_message FROM callback.heartbeats WHERE attempt_id = $1
