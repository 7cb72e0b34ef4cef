-- Part of a flush: inserts runs. Run by store::flush::statement.
INSERT INTO scheduler.runs (tenant, workspace, run_id, shard, generation, run_key, request, request_event_id,
    created_at, deadline, request_id, run_number, state, reason, stopped_by, version, plan_id, plan_fingerprint,
    deployment_id, counts, error, error_ordinal, changed_at, started_at, ended_at)
SELECT r.tenant, r.workspace, r.run_id, r.shard, r.generation, r.key, r.request, r.event_id, r.created_at, r.deadline,
    r.request_id, r.number, r.state, r.reason, r.stopped_by, r.version, r.plan_id, r.fingerprint, r.deployment,
    r.counts::integer[], r.error, r.error_ordinal, r.changed_at, r.started_at, r.ended_at
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
    $24, $25)
    AS r (tenant, workspace, run_id, shard, generation, key, request, event_id, created_at, deadline, request_id,
        number, state, reason, stopped_by, version, plan_id, fingerprint, deployment, counts, error, error_ordinal,
        changed_at, started_at, ended_at)
