-- Why: a repeated call must find the run that it created, also when that run has its own key; and a
-- request with the key of a different request must be visible to its caller.

-- The request id of the call that created the run, if a call did.
ALTER TABLE scheduler.runs ADD COLUMN request_id text COLLATE "C" CHECK (request_id <> '');
CREATE INDEX runs_by_request ON scheduler.runs (tenant, workspace, request_id) WHERE request_id IS NOT NULL;

-- The table is still empty.
ALTER TABLE scheduler.run_key_conflicts ADD COLUMN fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32);
CREATE INDEX run_key_conflicts_by_run ON scheduler.run_key_conflicts (run_id, fingerprint);
CREATE INDEX run_key_conflicts_by_age ON scheduler.run_key_conflicts (tenant, workspace, recorded_at, event_id);

DROP FUNCTION scheduler.fold;

-- As before, plus the two changes above: append, fold and watermark are one statement.
CREATE FUNCTION scheduler.fold(
    -- A batch that has only claims may be lost in a crash of Postgres: its tasks are then ready
    -- again.
    durable boolean,
    -- The arguments of ledger.append_held.
    a_holder text, held_shards smallint[], epochs bigint[], old_marks bigint[], new_marks bigint[], at timestamptz,
    shards smallint[], positions bigint[], event_ids uuid[], types smallint[], versions smallint[],
    tenants text[], workspaces text[], idempotency_keys text[], correlation_ids uuid[], causation_ids uuid[],
    payloads bytea[],
    -- New runs.
    r_tenant text[], r_workspace text[], r_run_id uuid[], r_number bigint[], r_shard smallint[], r_generation integer[],
    r_key text[], r_request bytea[], r_event_id uuid[], r_created_at timestamptz[], r_deadline timestamptz[],
    r_request_id text[],
    -- The state of new and existing runs.
    u_number bigint[], u_state smallint[], u_reason smallint[], u_stopped_by smallint[], u_version bigint[],
    u_plan_id bytea[], u_fingerprint text[], u_deployment text[], u_counts text[], u_error text[],
    u_error_ordinal integer[], u_changed_at timestamptz[], u_started_at timestamptz[], u_ended_at timestamptz[],
    -- The state of tasks.
    t_created boolean[], t_number bigint[], t_ordinal integer[], t_item integer[], t_attempt integer[],
    t_failures integer[], t_state smallint[], t_reason smallint[], t_cancelling boolean[], t_pushed boolean[],
    t_changed_at timestamptz[], t_ready_at timestamptz[], t_claimed_at timestamptz[], t_started_at timestamptz[],
    t_ended_at timestamptz[], t_due_at timestamptz[], t_attempt_id uuid[], t_worker uuid[], t_session bigint[],
    t_tenant text[], t_error bytea[], t_items bytea[],
    -- New materializations.
    m_attempt uuid[], m_asset text[], m_partition text[], m_tenant text[], m_workspace text[], m_number bigint[],
    m_ordinal integer[], m_item integer[], m_state smallint[], m_at timestamptz[], m_output bytea[],
    -- The last attempt of each partition, and the last promoted version; each partition at most
    -- once.
    p_tenant text[], p_workspace text[], p_asset text[], p_partition text[], p_attempt uuid[], p_at timestamptz[],
    p_number bigint[], p_state smallint[], p_made uuid[], p_made_at timestamptz[], p_made_number bigint[], p_code text[],
    -- Requests with the run key of a different request.
    c_tenant text[], c_workspace text[], c_event_id uuid[], c_run_id uuid[], c_request bytea[], c_fingerprint bytea[],
    c_at timestamptz[]
) RETURNS timestamptz
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    now_there timestamptz;
BEGIN
    IF NOT durable THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    now_there := ledger.append_held(1::smallint, a_holder, held_shards, epochs, old_marks, new_marks, at, shards,
        positions, event_ids, types, versions, tenants, workspaces, idempotency_keys, correlation_ids, causation_ids,
        payloads);
    IF cardinality(r_number) > 0 THEN
        INSERT INTO scheduler.runs (tenant, workspace, run_id, run_number, shard, generation, run_key, request,
            request_event_id, created_at, deadline, request_id, state, reason, stopped_by, version, plan_id, plan_fingerprint,
            deployment_id, counts, error, error_ordinal, changed_at, started_at, ended_at)
        SELECT r.tenant, r.workspace, r.run_id, r.number, r.shard, r.generation, r.key, r.request,
            r.event_id, r.created_at, r.deadline, r.request_id, u.state, u.reason, u.stopped_by, u.version, u.plan_id, u.fingerprint,
            u.deployment, u.counts::integer[], u.error, u.error_ordinal, u.changed_at, u.started_at, u.ended_at
        FROM unnest(r_tenant, r_workspace, r_run_id, r_number, r_shard, r_generation, r_key, r_request, r_event_id,
            r_created_at, r_deadline, r_request_id)
            AS r (tenant, workspace, run_id, number, shard, generation, key, request, event_id, created_at, deadline,
                request_id)
        JOIN unnest(u_number, u_state, u_reason, u_stopped_by, u_version, u_plan_id, u_fingerprint, u_deployment,
            u_counts, u_error, u_error_ordinal, u_changed_at, u_started_at, u_ended_at)
            AS u (number, state, reason, stopped_by, version, plan_id, fingerprint, deployment, counts, error,
                error_ordinal, changed_at, started_at, ended_at) ON u.number = r.number;
    END IF;
    IF cardinality(u_number) > cardinality(r_number) THEN
        UPDATE scheduler.runs s
        SET state = u.state, reason = u.reason, stopped_by = u.stopped_by, version = u.version, plan_id = u.plan_id,
            plan_fingerprint = coalesce(u.fingerprint, s.plan_fingerprint), deployment_id = u.deployment, counts = u.counts::integer[],
            error = u.error, error_ordinal = u.error_ordinal, changed_at = u.changed_at, started_at = u.started_at,
            ended_at = u.ended_at
        FROM unnest(u_number, u_state, u_reason, u_stopped_by, u_version, u_plan_id, u_fingerprint, u_deployment,
            u_counts, u_error, u_error_ordinal, u_changed_at, u_started_at, u_ended_at)
            AS u (number, state, reason, stopped_by, version, plan_id, fingerprint, deployment, counts, error,
                error_ordinal, changed_at, started_at, ended_at)
        WHERE s.run_number = u.number AND u.number <> ALL (r_number);
    END IF;
    IF t_created @> ARRAY[true] THEN
        INSERT INTO scheduler.tasks (run_number, ordinal, item, attempt, failures, state, reason, cancelling, pushed,
            changed_at, ready_at, claimed_at, started_at, ended_at, due_at, attempt_id, worker_id, session, tenant,
            error, items)
        SELECT t.number, t.ordinal, t.item, t.attempt, t.failures, t.state, t.reason, t.cancelling, t.pushed,
            t.changed_at, t.ready_at, t.claimed_at, t.started_at, t.ended_at, t.due_at, t.attempt_id, t.worker,
            t.session, t.tenant, t.error, t.items
        FROM unnest(t_created, t_number, t_ordinal, t_item, t_attempt, t_failures, t_state, t_reason, t_cancelling,
            t_pushed, t_changed_at, t_ready_at, t_claimed_at, t_started_at, t_ended_at, t_due_at, t_attempt_id,
            t_worker, t_session, t_tenant, t_error, t_items)
            AS t (created, number, ordinal, item, attempt, failures, state, reason, cancelling, pushed, changed_at,
                ready_at, claimed_at, started_at, ended_at, due_at, attempt_id, worker, session, tenant, error, items)
        WHERE t.created;
    END IF;
    IF t_created @> ARRAY[false] THEN
        UPDATE scheduler.tasks s
        SET attempt = t.attempt, failures = t.failures, state = t.state, reason = t.reason, cancelling = t.cancelling,
            pushed = t.pushed, changed_at = t.changed_at, ready_at = t.ready_at, claimed_at = t.claimed_at,
            started_at = t.started_at, ended_at = t.ended_at, due_at = t.due_at, attempt_id = t.attempt_id,
            worker_id = t.worker, session = t.session, error = coalesce(t.error, s.error),
            items = coalesce(t.items, s.items)
        FROM unnest(t_created, t_number, t_ordinal, t_item, t_attempt, t_failures, t_state, t_reason, t_cancelling,
            t_pushed, t_changed_at, t_ready_at, t_claimed_at, t_started_at, t_ended_at, t_due_at, t_attempt_id,
            t_worker, t_session, t_error, t_items)
            AS t (created, number, ordinal, item, attempt, failures, state, reason, cancelling, pushed, changed_at,
                ready_at, claimed_at, started_at, ended_at, due_at, attempt_id, worker, session, error, items)
        WHERE NOT t.created AND s.run_number = t.number AND s.ordinal = t.ordinal AND s.item = t.item;
    END IF;
    IF cardinality(m_attempt) > 0 THEN
        INSERT INTO scheduler.materializations (attempt_id, asset_key, partition_key, tenant, workspace, run_number,
            ordinal, item, state, recorded_at, promoted_at, output)
        SELECT m.attempt, m.asset, m.partition, m.tenant, m.workspace, m.number, m.ordinal, m.item, m.state, m.at,
            CASE WHEN m.state = 3 THEN m.at END, m.output
        FROM unnest(m_attempt, m_asset, m_partition, m_tenant, m_workspace, m_number, m_ordinal, m_item, m_state,
            m_at, m_output)
            AS m (attempt, asset, partition, tenant, workspace, number, ordinal, item, state, at, output);
    END IF;
    IF cardinality(p_attempt) > 0 THEN
        -- Ordered, because two folds may update the same partition and must not deadlock. The later
        -- end wins, ties are broken by attempt.
        INSERT INTO scheduler.partitions AS s (tenant, workspace, asset_key, partition_key, attempt_id, attempted_at,
            attempt_run, attempt_state, materialization_id, materialized_at, materialized_run, code_version)
        SELECT p.tenant, p.workspace, p.asset, p.partition, p.attempt, p.at, p.number, p.state,
            p.made, p.made_at, p.made_number, p.code
        FROM unnest(p_tenant, p_workspace, p_asset, p_partition, p_attempt, p_at, p_number, p_state, p_made, p_made_at,
            p_made_number, p_code)
            AS p (tenant, workspace, asset, partition, attempt, at, number, state, made, made_at, made_number, code)
        ORDER BY p.tenant COLLATE "C", p.workspace COLLATE "C", p.asset COLLATE "C", p.partition COLLATE "C"
        ON CONFLICT (tenant, workspace, asset_key, partition_key) DO UPDATE
        SET attempt_id = CASE WHEN (excluded.attempted_at, excluded.attempt_id) >= (s.attempted_at, s.attempt_id)
                THEN excluded.attempt_id ELSE s.attempt_id END,
            attempt_run = CASE WHEN (excluded.attempted_at, excluded.attempt_id) >= (s.attempted_at, s.attempt_id)
                THEN excluded.attempt_run ELSE s.attempt_run END,
            attempt_state = CASE WHEN (excluded.attempted_at, excluded.attempt_id) >= (s.attempted_at, s.attempt_id)
                THEN excluded.attempt_state ELSE s.attempt_state END,
            attempted_at = greatest(excluded.attempted_at, s.attempted_at),
            materialization_id = CASE WHEN s.materialized_at IS NULL
                OR (excluded.materialized_at, excluded.materialization_id) >= (s.materialized_at, s.materialization_id)
                THEN excluded.materialization_id ELSE s.materialization_id END,
            materialized_run = CASE WHEN s.materialized_at IS NULL
                OR (excluded.materialized_at, excluded.materialization_id) >= (s.materialized_at, s.materialization_id)
                THEN excluded.materialized_run ELSE s.materialized_run END,
            code_version = CASE WHEN s.materialized_at IS NULL
                OR (excluded.materialized_at, excluded.materialization_id) >= (s.materialized_at, s.materialization_id)
                THEN excluded.code_version ELSE s.code_version END,
            materialized_at = greatest(excluded.materialized_at, s.materialized_at);
    END IF;
    IF cardinality(c_event_id) > 0 THEN
        INSERT INTO scheduler.run_key_conflicts (tenant, workspace, event_id, run_id, request, fingerprint, recorded_at)
        SELECT c.tenant, c.workspace, c.event_id, c.run_id, c.request, c.fingerprint, c.at
        FROM unnest(c_tenant, c_workspace, c_event_id, c_run_id, c_request, c_fingerprint, c_at)
            AS c (tenant, workspace, event_id, run_id, request, fingerprint, at);
    END IF;
    RETURN now_there;
END
$$;
