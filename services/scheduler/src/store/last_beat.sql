-- Called by GetTask.
SELECT beat_at, progress_ppm, progress_message FROM callback.heartbeats WHERE attempt_id = $1
