-- Why: whether data is stale depends on when readers got the versions it could have been made from,
-- which for quarantined versions is when they were approved. The approval or rejection is stored
-- with the version, and check results are stored for the person who decides.
CREATE INDEX materializations_approved ON scheduler.materializations (tenant, workspace, asset_key)
    WHERE promoted_at > recorded_at;

ALTER TABLE scheduler.materializations
    -- servo.v1.Actor, encoded, and the event of the approval or rejection.
    ADD COLUMN resolved_by bytea,
    ADD COLUMN resolved_event uuid;

-- The check results of attempts. Most attempts have none.
CREATE TABLE scheduler.check_results (
    attempt_id uuid NOT NULL,
    -- The index among the checks of the attempt.
    place smallint NOT NULL CHECK (place >= 0),
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    asset_key text COLLATE "C" NOT NULL,
    partition_key text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    passed boolean NOT NULL,
    severity smallint NOT NULL CHECK (severity BETWEEN 1 AND 4),
    run_number bigint NOT NULL,
    ordinal integer NOT NULL,
    item integer NOT NULL,
    recorded_at timestamptz NOT NULL,
    -- servo.v1.CheckResult, encoded.
    result bytea NOT NULL,
    PRIMARY KEY (attempt_id, place)
);
CREATE INDEX check_results_by_age ON scheduler.check_results (tenant, workspace, recorded_at, attempt_id, place);
CREATE INDEX check_results_of_asset
    ON scheduler.check_results (tenant, workspace, asset_key, recorded_at, attempt_id, place);
CREATE INDEX check_results_of_run ON scheduler.check_results (run_number);
CREATE INDEX check_results_failed
    ON scheduler.check_results (tenant, workspace, recorded_at, attempt_id, place) WHERE NOT passed;

-- Runs after the other parts of a flush in the same statement, because one batch of a rebuild may
-- both create and resolve a version. Readers get an approved version unless there is a newer one,
-- by the same rule by which folds merge partitions.
CREATE FUNCTION scheduler.resolve(
    q_attempt uuid[], q_state smallint[], q_version bigint[], q_at timestamptz[], q_by bytea[], q_event uuid[],
    q_code text[]
) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE scheduler.materializations m
    SET state = q.state, version = q.version, promoted_at = CASE WHEN q.state = 3 THEN q.at END, resolved_by = q.by,
        resolved_event = q.event
    FROM unnest(q_attempt, q_state, q_version, q_at, q_by, q_event)
        AS q (attempt, state, version, at, by, event)
    WHERE m.attempt_id = q.attempt AND m.state = 4;
    UPDATE scheduler.partitions p
    SET materialization_id = v.attempt_id, materialized_at = v.recorded_at, materialized_run = v.run_number,
        code_version = v.code
    FROM (
        SELECT DISTINCT ON (m.tenant, m.workspace, m.asset_key, m.partition_key)
            m.tenant, m.workspace, m.asset_key, m.partition_key, m.attempt_id, m.recorded_at, m.run_number, q.code
        FROM unnest(q_attempt, q_event, q_code) AS q (attempt, event, code)
        JOIN scheduler.materializations m ON m.attempt_id = q.attempt
        WHERE m.state = 3 AND m.item = -1 AND m.resolved_event = q.event
        ORDER BY m.tenant, m.workspace, m.asset_key, m.partition_key, m.recorded_at DESC, m.attempt_id DESC
    ) v
    WHERE p.tenant = v.tenant AND p.workspace = v.workspace AND p.asset_key = v.asset_key
        AND p.partition_key = v.partition_key
        AND (p.materialized_at IS NULL
            OR (v.recorded_at, v.attempt_id) >= (p.materialized_at, p.materialization_id));
END
$$;
