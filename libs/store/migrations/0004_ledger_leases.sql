-- Why: exactly one process may fold a shard, and one that lost its lease must not write one more row.
-- Leases live on database time only. Every acquisition raises the epoch, every fold states the epoch
-- it holds, and the row lock that the fence takes lasts to the end of the fold's transaction.

-- Appenders lock the same rows for the length of their commit, and a stopped one for as long as its role's
-- timeouts allow. So that one such row delays no other, locked rows are passed over unless the caller will wait.

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

-- Takes up to at_most of these shards if they are free or their lease has run out.
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

-- Prolongs these leases if they are still held. A shard that is not answered was lost or passed over.
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

-- Gives a lease back, so that another holder need not wait for its end. Without effect on one that was lost.
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

-- The fence: moves the watermark if the caller still holds the lease and nobody else moved it, and answers
-- the shard's head. It raises rather than answers no, so that nothing after it in the transaction, nor
-- beside it in one statement, can take effect. The row stays locked until the transaction ends.
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
