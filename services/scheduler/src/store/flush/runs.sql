-- Part of a flush: updates runs. Run by store::flush::statement.
UPDATE scheduler.runs s
SET state = u.state, reason = u.reason, stopped_by = u.stopped_by, version = u.version, plan_id = u.plan_id,
    plan_fingerprint = coalesce(u.fingerprint, s.plan_fingerprint), deployment_id = u.deployment,
    counts = u.counts::integer[], error = u.error, error_ordinal = u.error_ordinal, changed_at = u.changed_at,
    started_at = u.started_at, ended_at = u.ended_at
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
    AS u (number, state, reason, stopped_by, version, plan_id, fingerprint, deployment, counts, error, error_ordinal,
        changed_at, started_at, ended_at)
WHERE s.run_number = u.number
