-- Finds whether this request is already recorded as a conflict of the run. Run by
-- store::conflicts::is_recorded.
SELECT event_id FROM scheduler.run_key_conflicts WHERE run_id = $1 AND fingerprint = $2 AND tenant = $3
