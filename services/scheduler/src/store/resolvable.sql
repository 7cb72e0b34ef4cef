-- Returns the state and version of the materializations of these attempts. The outputs of one
-- attempt are quarantined and resolved together, so one row per attempt is enough. Run by
-- store::materializations::find_resolvable.
SELECT DISTINCT ON (m.attempt_id) m.attempt_id, m.state, m.version
FROM scheduler.materializations m
WHERE m.attempt_id = ANY ($1)
ORDER BY m.attempt_id, m.asset_key
