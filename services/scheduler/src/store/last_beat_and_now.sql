-- Returns the last heartbeat of an attempt and the time. Run by store::heartbeats::last_and_now.
SELECT (SELECT beat_at FROM callback.heartbeats WHERE attempt_id = $1), clock_timestamp()
