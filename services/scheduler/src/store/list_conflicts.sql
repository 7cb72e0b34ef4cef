-- Lists run key conflicts, newest first, with the request of the run that holds the key.
-- Run by store::conflicts::list.
SELECT c.event_id, c.request, c.recorded_at, r.request AS first_request
FROM scheduler.run_key_conflicts c
JOIN scheduler.runs r ON r.run_id = c.run_id
WHERE c.tenant = $1 AND c.workspace = $2 AND (c.recorded_at, c.event_id) < ($3, $4)
    AND ($6::uuid IS NULL OR c.run_id = $6) AND ($7::text IS NULL OR r.run_key = $7)
    AND c.recorded_at >= $8 AND c.recorded_at < $9
ORDER BY c.recorded_at DESC, c.event_id DESC
LIMIT $5
