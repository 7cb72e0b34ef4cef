-- Why: exactly one process may fold a shard, and one that lost its lease must not write another
-- row. Leases use database time only. Every acquisition raises the epoch, every fold states its
-- epoch, and the row lock that the fence takes lasts to the end of the fold's transaction.

-- Appenders lock the same rows for the duration of their commit, and a stopped appender for as long
-- as its role's timeouts allow. Locked rows are skipped unless the caller asks to wait, so that one
-- such row does not delay the others.

CREATE FUNCTION ledger.check_lessee(a_stream smallint) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM ledger.lessees l WHERE l.role = session_user AND l.stream = a_stream) THEN
        RAISE EXCEPTION 'role % may not lease shards of stream %', session_user, a_stream
            USING ERRCODE = 'insufficient_privilege', HINT = 'ledger.lessees lists who may lease what';
    END IF;
END
$$;

-- Acquires up to at_most of these shards if they are free or their lease has expired.
CREATE FUNCTION ledger.acquire(
    a_stream smallint, a_shards smallint[], a_holder text, an_address text, ttl interval, at_most integer,
    wait boolean
) RETURNS TABLE (shard smallint, epoch bigint, head bigint, watermark bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    free smallint[];
BEGIN
    PERFORM ledger.check_lessee(a_stream);
    IF wait THEN
        free := ARRAY(
            SELECT s.shard FROM ledger.shards s
            WHERE s.stream = a_stream AND s.shard = ANY (a_shards)
                AND (s.lease_until IS NULL OR s.lease_until <= clock_timestamp())
            ORDER BY s.shard LIMIT at_most
            FOR NO KEY UPDATE);
    ELSE
        free := ARRAY(
            SELECT s.shard FROM ledger.shards s
            WHERE s.stream = a_stream AND s.shard = ANY (a_shards)
                AND (s.lease_until IS NULL OR s.lease_until <= clock_timestamp())
            ORDER BY s.shard LIMIT at_most
            FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
    RETURN QUERY
    UPDATE ledger.shards s
    SET holder = a_holder, address = an_address, epoch = s.epoch + 1, lease_until = clock_timestamp() + ttl
    WHERE s.stream = a_stream AND s.shard = ANY (free)
    RETURNING s.shard, s.epoch, s.head, s.watermark;
END
$$;

-- Extends these leases if they are still held. A shard that is not returned was lost or skipped.
CREATE FUNCTION ledger.renew(
    a_stream smallint, a_shards smallint[], epochs bigint[], a_holder text, ttl interval, wait boolean
) RETURNS TABLE (shard smallint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    held smallint[];
BEGIN
    PERFORM ledger.check_lessee(a_stream);
    IF wait THEN
        held := ARRAY(
            SELECT s.shard FROM ledger.shards s
            JOIN unnest(a_shards, epochs) AS l (shard, epoch) ON l.shard = s.shard AND l.epoch = s.epoch
            WHERE s.stream = a_stream AND s.holder = a_holder AND s.lease_until > clock_timestamp()
            ORDER BY s.shard
            FOR NO KEY UPDATE OF s);
    ELSE
        held := ARRAY(
            SELECT s.shard FROM ledger.shards s
            JOIN unnest(a_shards, epochs) AS l (shard, epoch) ON l.shard = s.shard AND l.epoch = s.epoch
            WHERE s.stream = a_stream AND s.holder = a_holder AND s.lease_until > clock_timestamp()
            ORDER BY s.shard
            FOR NO KEY UPDATE OF s SKIP LOCKED);
    END IF;
    RETURN QUERY
    UPDATE ledger.shards s SET lease_until = clock_timestamp() + ttl
    WHERE s.stream = a_stream AND s.shard = ANY (held)
    RETURNING s.shard;
END
$$;

-- Releases a lease, so that another holder need not wait for its expiry. No effect on a lost lease.
CREATE FUNCTION ledger.release(a_stream smallint, a_shard smallint, an_epoch bigint, a_holder text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM ledger.check_lessee(a_stream);
    UPDATE ledger.shards s SET holder = NULL, address = NULL, lease_until = NULL
    WHERE s.stream = a_stream AND s.shard = a_shard AND s.epoch = an_epoch AND s.holder = a_holder;
END
$$;

-- The live instances that share the shards of a stream, with or without a lease: each computes its
-- fair share from their number.
CREATE TABLE ledger.instances (
    stream smallint NOT NULL,
    holder text COLLATE "C" NOT NULL CHECK (holder <> ''),
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (stream, holder)
) WITH (fillfactor = 50);

-- Records that an instance is alive and returns the number of live instances, including itself. An
-- instance counts for one ttl; rows that were not updated for ten are deleted.
CREATE FUNCTION ledger.note_instance(a_stream smallint, a_holder text, ttl interval) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM ledger.check_lessee(a_stream);
    DELETE FROM ledger.instances i
    WHERE i.stream = a_stream AND i.holder <> a_holder AND i.seen_at < clock_timestamp() - 10 * ttl;
    INSERT INTO ledger.instances AS i (stream, holder, seen_at) VALUES (a_stream, a_holder, clock_timestamp())
    ON CONFLICT (stream, holder) DO UPDATE SET seen_at = excluded.seen_at;
    RETURN (
        SELECT count(*) FROM ledger.instances i
        WHERE i.stream = a_stream AND i.seen_at > clock_timestamp() - ttl
    );
END
$$;

-- Removes an instance that is shutting down, so that the others take over its share immediately.
CREATE FUNCTION ledger.forget_instance(a_stream smallint, a_holder text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM ledger.check_lessee(a_stream);
    DELETE FROM ledger.instances i WHERE i.stream = a_stream AND i.holder = a_holder;
END
$$;

-- The fence: moves the watermark if the caller still holds the lease and nothing else moved it, and
-- returns the shard's head. It raises instead of returning false, so that no later part of the
-- transaction and no other part of the same statement can take effect. The row stays locked until
-- the transaction ends.
CREATE FUNCTION ledger.fence(
    a_stream smallint, a_shard smallint, an_epoch bigint, a_holder text, old_mark bigint, new_mark bigint
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found_head bigint;
BEGIN
    PERFORM ledger.check_lessee(a_stream);
    UPDATE ledger.shards s SET watermark = new_mark
    WHERE s.stream = a_stream AND s.shard = a_shard AND s.epoch = an_epoch AND s.holder = a_holder
        AND s.lease_until > clock_timestamp() AND s.watermark = old_mark AND new_mark >= old_mark
    RETURNING s.head INTO found_head;
    IF found_head IS NULL THEN
        RAISE EXCEPTION 'the lease on stream %, shard % at epoch % and watermark % is no longer held',
            a_stream, a_shard, an_epoch, old_mark
            USING ERRCODE = 'SVL01';
    END IF;
    RETURN found_head;
END
$$;

-- The holder's append: verifies the lease of every shard, moves its watermark, and stores the
-- events after the old head at the positions at which the holder has already folded them. Returns
-- the database's time. Raises, so that no other part of the statement takes effect: SVL01 when a
-- lease is lost, SVB01 when another appender was first, SVC01 when the given time is wrong, SVK01
-- when a key is taken.
--
-- A shard whose mark moves without events in this call was appended to by others; its new mark may
-- not exceed its head.
CREATE FUNCTION ledger.append_held(
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
    PERFORM ledger.check_lessee(a_stream);
    IF abs(extract(epoch FROM clock_timestamp() - at)) > 1 THEN
        RAISE EXCEPTION 'the time given is % and the time is %', at, clock_timestamp() USING ERRCODE = 'SVC01';
    END IF;
    PERFORM FROM ledger.shards s
    WHERE s.stream = a_stream AND s.shard = ANY (held_shards)
    ORDER BY s.shard
    FOR NO KEY UPDATE;
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
        BEGIN
            INSERT INTO ledger.keys (hash, event_id, position, recorded_at, stream, shard, body)
            SELECT ledger.hash_key(e.tenant, e.workspace, e.key), e.event_id, e.position, at, a_stream, e.shard,
                ledger.hash_body(e.type, e.version, e.payload)
            FROM unnest(tenants, workspaces, idempotency_keys, types, versions, payloads, event_ids, positions, shards)
                AS e (tenant, workspace, key, type, version, payload, event_id, position, shard)
            ORDER BY 1;
        EXCEPTION WHEN unique_violation THEN
            RAISE EXCEPTION 'a key of these events is taken' USING ERRCODE = 'SVK01';
        END;
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

-- Raises the reason why ledger.append_held could not move every mark.
CREATE FUNCTION ledger.refuse_append_held(
    a_stream smallint, a_holder text, held_shards smallint[], epochs bigint[], old_marks bigint[]
) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    lost record;
BEGIN
    SELECT u.shard, u.epoch, u.old_mark INTO lost
    FROM unnest(held_shards, epochs, old_marks) AS u (shard, epoch, old_mark)
    WHERE NOT EXISTS (
        SELECT FROM ledger.shards s
        WHERE s.stream = a_stream AND s.shard = u.shard AND s.epoch = u.epoch AND s.holder = a_holder
            AND s.lease_until > clock_timestamp() AND s.watermark = u.old_mark)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the lease on stream %, shard % at epoch % and watermark % is no longer held',
            a_stream, lost.shard, lost.epoch, lost.old_mark
            USING ERRCODE = 'SVL01';
    END IF;
    RAISE EXCEPTION 'somebody else appended to a shard of stream % first', a_stream USING ERRCODE = 'SVB01';
END
$$;
