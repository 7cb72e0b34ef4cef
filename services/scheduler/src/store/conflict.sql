-- Called by TriggerRun: whether this request is on record as a conflict of that run.
SELECT event_id FROM scheduler.run_key_conflicts WHERE run_id = $1 AND fingerprint = $2 AND tenant = $3
