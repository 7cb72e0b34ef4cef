-- Reads batches of log lines in the order in which they were stored. Run by
-- store::logs::logs_after.
SELECT arrival, attempt_id, lines FROM callback.logs
WHERE run_id = $1 AND arrival > $2 AND ($3::uuid[] IS NULL OR attempt_id = ANY ($3))
ORDER BY arrival LIMIT $4
