-- Reads batches of log lines from the end. Run by store::logs::logs_before.
SELECT arrival, attempt_id, lines FROM callback.logs
WHERE run_id = $1 AND arrival < $2 AND ($3::uuid[] IS NULL OR attempt_id = ANY ($3))
ORDER BY arrival DESC LIMIT $4
