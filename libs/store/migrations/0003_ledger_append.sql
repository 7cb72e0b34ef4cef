-- Why: positions must be dense and in commit order, so that a reader that selects
-- `position > watermark` skips nothing. The row lock taken here lasts to commit and ensures both.

-- Raises if the caller may not append these events; returns the caller's source name.
CREATE FUNCTION ledger.check_append(streams smallint[], types smallint[], tenants text[]) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    refused record;
    caller record;
    own_tenant text := nullif(current_setting('servo.tenant', true), '');
BEGIN
    SELECT a.stream, a.type, w.stream AS right_stream INTO refused
    FROM (SELECT DISTINCT u.stream, u.type FROM unnest(streams, types) AS u (stream, type)) a
    LEFT JOIN ledger.writers w ON w.role = session_user AND w.type = a.type
    WHERE w.stream IS DISTINCT FROM a.stream
    LIMIT 1;
    IF FOUND AND refused.right_stream IS NULL THEN
        RAISE EXCEPTION 'role % may not append events of type %', session_user, refused.type
            USING ERRCODE = 'insufficient_privilege', HINT = 'ledger.writers lists who may append what';
    ELSIF FOUND THEN
        RAISE EXCEPTION 'events of type % belong to stream %, not to stream %',
            refused.type, refused.right_stream, refused.stream
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT w.source, w.one_tenant INTO caller FROM ledger.writers w WHERE w.role = session_user LIMIT 1;
    IF caller.one_tenant AND EXISTS (SELECT FROM unnest(tenants) t WHERE t IS DISTINCT FROM own_tenant) THEN
        RAISE EXCEPTION 'role % may append for tenant % only, and an event names another',
            session_user, coalesce(own_tenant, '(none)')
            USING ERRCODE = 'insufficient_privilege', HINT = 'servo.tenant names the tenant of the transaction';
    END IF;
    RETURN caller.source;
END
$$;

-- Both have no search_path of their own, so that the planner can inline them; their bodies are
-- already bound. A zero byte separates the parts, because no text contains one.
CREATE FUNCTION ledger.hash_key(tenant text, workspace text, key text) RETURNS uuid
LANGUAGE sql IMMUTABLE
RETURN encode(substr(sha256(textsend(tenant) || '\x00' || textsend(workspace) || '\x00' || textsend(key)), 1, 16),
    'hex')::uuid;

CREATE FUNCTION ledger.hash_body(type smallint, version smallint, payload bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE
RETURN substr(sha256(int2send(type) || int2send(version) || payload), 1, 16);

-- Numbers and stores the fresh ones of these events; the caller has locked their shards. Returns,
-- for each event, its position or the one it would have.
CREATE FUNCTION ledger.store(
    appender text,
    hashes uuid[],
    fresh boolean[],
    streams smallint[],
    shards smallint[],
    event_ids uuid[],
    types smallint[],
    versions smallint[],
    tenants text[],
    workspaces text[],
    idempotency_keys text[],
    correlation_ids uuid[],
    causation_ids uuid[],
    payloads bytea[]
) RETURNS TABLE (stream smallint, shard smallint, "position" bigint, event_id uuid, recorded_at timestamptz)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    -- Read under the locks and never before the shard's last event, so time does not go back within
    -- a shard.
    at timestamptz := clock_timestamp();
    positions bigint[];
    times timestamptz[];
BEGIN
    SELECT array_agg(n.position), array_agg(n.recorded_at) INTO positions, times
    FROM (
        SELECT greatest(at, s.recorded_at) AS recorded_at, s.head
            + count(*) FILTER (WHERE e.fresh) OVER (PARTITION BY e.stream, e.shard ORDER BY e.ordinal) AS position
        FROM unnest(streams, shards, fresh) WITH ORDINALITY AS e (stream, shard, fresh, ordinal)
        JOIN ledger.shards s ON s.stream = e.stream AND s.shard = e.shard
        ORDER BY e.ordinal
    ) n;
    IF cardinality(positions) IS DISTINCT FROM cardinality(streams) THEN
        RAISE EXCEPTION 'an event names a shard that does not exist: %', (
            SELECT format('stream %s, shard %s', u.stream, u.shard)
            FROM unnest(streams, shards) AS u (stream, shard)
            WHERE NOT EXISTS (SELECT FROM ledger.shards s WHERE s.stream = u.stream AND s.shard = u.shard)
            LIMIT 1)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;

    INSERT INTO ledger.keys (hash, event_id, position, recorded_at, stream, shard, body)
    SELECT e.hash, e.event_id, e.position, e.recorded_at, e.stream, e.shard,
        ledger.hash_body(e.type, e.version, e.payload)
    FROM unnest(hashes, types, versions, payloads, event_ids, positions, times, streams, shards, fresh)
        AS e (hash, type, version, payload, event_id, position, recorded_at, stream, shard, fresh)
    WHERE e.fresh
    ORDER BY e.hash;

    INSERT INTO ledger.events (stream, shard, type, version, position, recorded_at, event_id,
        correlation_id, causation_id, tenant, workspace, source, idempotency_key, payload)
    SELECT e.stream, e.shard, e.type, e.version, e.position, e.recorded_at, e.event_id,
        e.correlation_id, e.causation_id, e.tenant, e.workspace, appender, e.key, e.payload
    FROM unnest(streams, shards, types, versions, positions, times, event_ids, correlation_ids, causation_ids,
        tenants, workspaces, idempotency_keys, payloads, fresh)
        AS e (stream, shard, type, version, position, recorded_at, event_id, correlation_id, causation_id,
            tenant, workspace, key, payload, fresh)
    WHERE e.fresh;

    UPDATE ledger.shards s SET head = f.head, recorded_at = f.recorded_at
    FROM (
        SELECT e.stream, e.shard, max(e.position) AS head, max(e.recorded_at) AS recorded_at
        FROM unnest(streams, shards, positions, times, fresh) AS e (stream, shard, position, recorded_at, fresh)
        WHERE e.fresh
        GROUP BY e.stream, e.shard
    ) f
    WHERE s.stream = f.stream AND s.shard = f.shard;

    RETURN QUERY SELECT e.* FROM unnest(streams, shards, positions, event_ids, times) AS e;
END
$$;

-- Appends events and returns one row per event, in input order:
--   outcome 1 = new, 2 = duplicate (same key and body), 3 = conflict (the key has another body);
--   stream, shard, position, event_id and recorded_at of the event that the ledger stores.
-- Nearly always every key is new, so that case is tried first and costs no lookups; otherwise the
-- primary key of ledger.keys raises. Locks are taken in one order everywhere (shards ascending,
-- then key hashes ascending), so that callers cannot deadlock as long as a transaction appends
-- once.
CREATE FUNCTION ledger.append(
    streams smallint[],
    shards smallint[],
    event_ids uuid[],
    types smallint[],
    versions smallint[],
    tenants text[],
    workspaces text[],
    idempotency_keys text[],
    correlation_ids uuid[],
    causation_ids uuid[],
    payloads bytea[]
) RETURNS TABLE (
    outcome smallint,
    stream smallint,
    shard smallint,
    "position" bigint,
    event_id uuid,
    recorded_at timestamptz
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Planning for the given arrays would cost a small append more than running it.
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    appender text := ledger.check_append(streams, types, tenants);
    hashes uuid[];
    fresh boolean[];
BEGIN
    IF cardinality(streams) = 0 THEN
        RETURN;
    END IF;
    PERFORM FROM ledger.shards s
    WHERE (s.stream, s.shard) IN (SELECT u.stream, u.shard FROM unnest(streams, shards) AS u (stream, shard))
    ORDER BY s.stream, s.shard
    FOR NO KEY UPDATE;
    hashes := ARRAY(
        SELECT ledger.hash_key(e.tenant, e.workspace, e.key)
        FROM unnest(tenants, workspaces, idempotency_keys) AS e (tenant, workspace, key));

    BEGIN
        RETURN QUERY
        SELECT 1::smallint, e.*
        FROM ledger.store(appender, hashes, array_fill(true, ARRAY[cardinality(streams)]), streams, shards, event_ids,
            types, versions, tenants, workspaces, idempotency_keys, correlation_ids, causation_ids, payloads) e;
        RETURN;
    EXCEPTION WHEN unique_violation THEN
        -- Some key exists; nothing was stored.
    END;

    -- An event is fresh if its key is neither stored nor earlier in this call. OFFSET 0 keeps each
    -- lookup an index scan, whatever the planner estimates for a new table.
    fresh := ARRAY(
        SELECT k.hash IS NULL AND row_number() OVER (PARTITION BY e.hash ORDER BY e.ordinal) = 1
        FROM unnest(hashes) WITH ORDINALITY AS e (hash, ordinal)
        LEFT JOIN LATERAL (SELECT k.hash FROM ledger.keys k WHERE k.hash = e.hash OFFSET 0) k ON true
        ORDER BY e.ordinal);
    PERFORM FROM ledger.store(appender, hashes, fresh, streams, shards, event_ids, types, versions, tenants,
        workspaces, idempotency_keys, correlation_ids, causation_ids, payloads);
    -- Now every key of the call is stored, by this call or by an earlier one.
    RETURN QUERY
    SELECT CASE WHEN e.fresh THEN 1::smallint
            WHEN k.body = ledger.hash_body(e.type, e.version, e.payload) THEN 2::smallint
            ELSE 3::smallint END,
        k.stream, k.shard, k.position, k.event_id, k.recorded_at
    FROM unnest(hashes, types, versions, payloads, fresh) WITH ORDINALITY
        AS e (hash, type, version, payload, fresh, ordinal)
    CROSS JOIN LATERAL (SELECT * FROM ledger.keys k WHERE k.hash = e.hash OFFSET 0) k
    ORDER BY e.ordinal;
END
$$;
