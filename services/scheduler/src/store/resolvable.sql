-- Called by Lane::resolvable and RetryRun: the outputs of an attempt wait together and are decided about together.
SELECT DISTINCT ON (m.attempt_id) m.attempt_id, m.state, m.version
FROM scheduler.materializations m
WHERE m.attempt_id = ANY ($1)
ORDER BY m.attempt_id, m.asset_key
