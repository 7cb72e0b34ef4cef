-- Called by ForceCancelTask: when the attempt beat last, and the time.
SELECT (SELECT beat_at FROM callback.heartbeats WHERE attempt_id = $1), clock_timestamp()
