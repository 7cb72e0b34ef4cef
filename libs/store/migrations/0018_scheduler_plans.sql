-- Why: a new store has no statistics, and a query plan made then is cached: a fold of one task
-- scanned the whole table of tasks, and a lookup of one run all runs of its tenant. Lookups by key
-- must use an index from the first row on.

-- With the tenant first, this index and runs_by_age look alike to a planner without statistics. A
-- request id alone identifies a run; the query compares the tenant afterwards.
DROP INDEX scheduler.runs_by_request;
CREATE INDEX runs_by_request ON scheduler.runs (request_id) WHERE request_id IS NOT NULL;

-- A fold addresses every row by its key, so a nested loop over an index is always right.
-- ledger.append_held, which it calls, is planned under these settings too.
ALTER FUNCTION scheduler.fold SET enable_hashjoin = off;
ALTER FUNCTION scheduler.fold SET enable_mergejoin = off;

-- Postgres parses every check constraint again in each statement that writes, which took a large
-- part of the time of a fold of one task. The types of the writing code exclude invalid values, and
-- the invariant checker verifies them.
ALTER TABLE scheduler.tasks
    DROP CONSTRAINT tasks_ordinal_check, DROP CONSTRAINT tasks_item_check, DROP CONSTRAINT tasks_attempt_check,
    DROP CONSTRAINT tasks_failures_check, DROP CONSTRAINT tasks_state_check, DROP CONSTRAINT tasks_tenant_check;
ALTER TABLE scheduler.partitions
    DROP CONSTRAINT partitions_tenant_check, DROP CONSTRAINT partitions_workspace_check;
ALTER TABLE ledger.shards DROP CONSTRAINT shards_shard_check, DROP CONSTRAINT shards_epoch_check;

-- As before, but cheaper for a batch of one shard: its row needs no lock in advance, and a taken
-- key is detected by the number of rows instead of in a subtransaction.
CREATE OR REPLACE FUNCTION ledger.append_held(
    a_stream smallint,
    a_holder text,
    held_shards smallint[],
    epochs bigint[],
    old_marks bigint[],
    new_marks bigint[],
    at timestamptz,
    shards smallint[],
    positions bigint[],
    event_ids uuid[],
    types smallint[],
    versions smallint[],
    tenants text[],
    workspaces text[],
    idempotency_keys text[],
    correlation_ids uuid[],
    causation_ids uuid[],
    payloads bytea[]
) RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    appender text;
    moved integer;
BEGIN
    IF NOT EXISTS (SELECT FROM ledger.lessees l WHERE l.role = session_user AND l.stream = a_stream) THEN
        PERFORM ledger.check_lessee(a_stream);
    END IF;
    IF abs(extract(epoch FROM clock_timestamp() - at)) > 1 THEN
        RAISE EXCEPTION 'the time given is % and the time is %', at, clock_timestamp() USING ERRCODE = 'SVC01';
    END IF;
    IF cardinality(held_shards) > 1 THEN
        PERFORM FROM ledger.shards s
        WHERE s.stream = a_stream AND s.shard = ANY (held_shards)
        ORDER BY s.shard
        FOR NO KEY UPDATE;
    END IF;
    UPDATE ledger.shards s
    SET watermark = h.new_mark,
        head = greatest(s.head, h.new_mark),
        recorded_at = CASE WHEN h.appended > 0 THEN greatest(s.recorded_at, at) ELSE s.recorded_at END
    FROM (
        SELECT u.shard, u.epoch, u.old_mark, u.new_mark, coalesce(e.appended, 0) AS appended
        FROM unnest(held_shards, epochs, old_marks, new_marks) AS u (shard, epoch, old_mark, new_mark)
        LEFT JOIN (SELECT e.shard, count(*) AS appended FROM unnest(shards) AS e (shard) GROUP BY e.shard) e
            ON e.shard = u.shard
    ) h
    WHERE s.stream = a_stream AND s.shard = h.shard AND s.epoch = h.epoch AND s.holder = a_holder
        AND s.lease_until > clock_timestamp() AND s.watermark = h.old_mark
        AND CASE WHEN h.appended > 0 THEN s.head = h.new_mark - h.appended ELSE h.new_mark BETWEEN h.old_mark AND s.head END;
    GET DIAGNOSTICS moved = ROW_COUNT;
    IF moved <> cardinality(held_shards) THEN
        PERFORM ledger.refuse_append_held(a_stream, a_holder, held_shards, epochs, old_marks);
    END IF;
    IF cardinality(shards) > 0 THEN
        appender := ledger.check_append(array_fill(a_stream, ARRAY[cardinality(types)]), types, tenants);
        INSERT INTO ledger.keys (hash, event_id, position, recorded_at, stream, shard, body)
        SELECT ledger.hash_key(e.tenant, e.workspace, e.key), e.event_id, e.position, at, a_stream, e.shard,
            ledger.hash_body(e.type, e.version, e.payload)
        FROM unnest(tenants, workspaces, idempotency_keys, types, versions, payloads, event_ids, positions, shards)
            AS e (tenant, workspace, key, type, version, payload, event_id, position, shard)
        ORDER BY 1
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS moved = ROW_COUNT;
        IF moved <> cardinality(shards) THEN
            RAISE EXCEPTION 'a key of these events is taken' USING ERRCODE = 'SVK01';
        END IF;
        INSERT INTO ledger.events (stream, shard, type, version, position, recorded_at, event_id,
            correlation_id, causation_id, tenant, workspace, source, idempotency_key, payload)
        SELECT a_stream, e.shard, e.type, e.version, e.position, at, e.event_id,
            e.correlation_id, e.causation_id, e.tenant, e.workspace, appender, e.key, e.payload
        FROM unnest(shards, types, versions, positions, event_ids, correlation_ids, causation_ids,
            tenants, workspaces, idempotency_keys, payloads)
            AS e (shard, type, version, position, event_id, correlation_id, causation_id,
                tenant, workspace, key, payload);
    END IF;
    RETURN clock_timestamp();
END
$$;
