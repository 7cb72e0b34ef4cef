-- Finds a materialization of an attempt. Run by store::materializations::find.
SELECT m.attempt_id, m.asset_key, m.ordinal, m.item, m.state, m.version, m.recorded_at, m.promoted_at, m.output,
    r.run_id, r.deployment_id, r.plan_id, m.resolved_by, m.resolved_event
FROM scheduler.materializations m
JOIN scheduler.runs r ON r.run_number = m.run_number
WHERE m.tenant = $1 AND m.workspace = $2 AND m.attempt_id = $3
ORDER BY m.asset_key
LIMIT 1
