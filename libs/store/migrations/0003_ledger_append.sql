-- Why: positions must be dense and their order must be commit order, so that a reader that takes
-- `position > watermark` skips nothing. The row lock taken here lasts to commit and gives both.

-- Refuses what the caller may not append, and answers who the caller is.
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

-- Appends events and answers one row per event, in input order:
--   outcome 1 = new, 2 = duplicate (this key and body are known), 3 = conflict (the key has another body);
--   stream, shard, position, event_id and recorded_at are those of the event that stands in the ledger.
-- Locks are taken in one order everywhere (shards ascending, then key hashes ascending), so that callers
-- cannot deadlock as long as a transaction appends once. Two callers that race with one key on two shards
-- meet at keys_pkey: the later one fails with a unique violation and finds the duplicate when it repeats.
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
AS $$
#variable_conflict use_column
DECLARE
    appender text;
    at timestamptz;
    answered integer;
BEGIN
    appender := ledger.check_append(streams, types, tenants);
    PERFORM 1 FROM ledger.shards s
    WHERE (s.stream, s.shard) IN (SELECT u.stream, u.shard FROM unnest(streams, shards) AS u (stream, shard))
    ORDER BY s.stream, s.shard
    FOR NO KEY UPDATE;
    -- Taken under the locks, hence no event of a shard is stamped before its predecessor.
    at := clock_timestamp();
    RETURN QUERY
    WITH hashed AS (
        SELECT i.*,
            substr(sha256(textsend(i.tenant) || '\x00' || textsend(i.workspace) || '\x00'
                || textsend(i.key)), 1, 16) AS hash,
            substr(sha256(int2send(i.type) || int2send(i.version) || i.payload), 1, 16)
                AS body
        FROM unnest(streams, shards, event_ids, types, versions, tenants, workspaces, idempotency_keys,
            correlation_ids, causation_ids, payloads) WITH ORDINALITY AS i (stream, shard, event_id, type,
            version, tenant, workspace, key, correlation_id, causation_id, payload, ordinal)
    ), known AS (
        SELECT h.*, k.body AS k_body, k.stream AS k_stream, k.shard AS k_shard, k.position AS k_position,
            k.event_id AS k_event_id, k.recorded_at AS k_recorded_at,
            k.hash IS NULL AND row_number() OVER (PARTITION BY h.hash ORDER BY h.ordinal) = 1 AS fresh
        FROM hashed h LEFT JOIN ledger.keys k ON k.hash = h.hash
    ), numbered AS MATERIALIZED (
        SELECT n.*,
            s.head + count(*) FILTER (WHERE n.fresh)
                OVER (PARTITION BY n.stream, n.shard ORDER BY n.ordinal) AS position,
            greatest(at, s.recorded_at) AS recorded_at
        FROM known n JOIN ledger.shards s ON s.stream = n.stream AND s.shard = n.shard
    ), events AS (
        INSERT INTO ledger.events (stream, shard, type, version, position, recorded_at, event_id,
            correlation_id, causation_id, tenant, workspace, source, idempotency_key, payload)
        SELECT n.stream, n.shard, n.type, n.version, n.position, n.recorded_at, n.event_id,
            n.correlation_id, n.causation_id, n.tenant, n.workspace, appender, n.key, n.payload
        FROM numbered n WHERE n.fresh
    ), keys AS (
        INSERT INTO ledger.keys (hash, body, event_id, position, recorded_at, stream, shard)
        SELECT n.hash, n.body, n.event_id, n.position, n.recorded_at, n.stream, n.shard
        FROM numbered n WHERE n.fresh ORDER BY n.hash
    ), heads AS (
        UPDATE ledger.shards s SET head = f.head, recorded_at = f.recorded_at
        FROM (SELECT n.stream, n.shard, max(n.position) AS head, max(n.recorded_at) AS recorded_at
              FROM numbered n WHERE n.fresh GROUP BY n.stream, n.shard) f
        WHERE s.stream = f.stream AND s.shard = f.shard
    ), firsts AS (
        SELECT n.ordinal, n.fresh, n.body,
            coalesce(n.k_body, first_value(n.body) OVER same_key) AS kept_body,
            coalesce(n.k_stream, first_value(n.stream) OVER same_key) AS stream,
            coalesce(n.k_shard, first_value(n.shard) OVER same_key) AS shard,
            coalesce(n.k_position, first_value(n.position) OVER same_key) AS position,
            coalesce(n.k_event_id, first_value(n.event_id) OVER same_key) AS event_id,
            coalesce(n.k_recorded_at, first_value(n.recorded_at) OVER same_key) AS recorded_at
        FROM numbered n WINDOW same_key AS (PARTITION BY n.hash ORDER BY n.ordinal)
    )
    SELECT (CASE WHEN f.fresh THEN 1 WHEN f.body = f.kept_body THEN 2 ELSE 3 END)::smallint,
        f.stream, f.shard, f.position, f.event_id, f.recorded_at
    FROM firsts f ORDER BY f.ordinal;
    GET DIAGNOSTICS answered = ROW_COUNT;
    IF answered < cardinality(streams) THEN
        RAISE EXCEPTION 'an event names a shard that does not exist: %', (
            SELECT format('stream %s, shard %s', u.stream, u.shard)
            FROM unnest(streams, shards) AS u (stream, shard)
            WHERE NOT EXISTS (SELECT FROM ledger.shards s WHERE s.stream = u.stream AND s.shard = u.shard)
            LIMIT 1)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;
