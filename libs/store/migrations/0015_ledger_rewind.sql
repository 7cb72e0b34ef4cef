-- Why: a projection is rebuilt by folding its shard again with the regular fold. The holder deletes
-- the shard's rows, moves the watermark back to the first retained event, and catches up.
CREATE FUNCTION ledger.rewind(a_stream smallint, a_shard smallint, an_epoch bigint, a_holder text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    beginning bigint;
BEGIN
    PERFORM ledger.check_lessee(a_stream);
    SELECT coalesce(min(e.position) - 1, s.head) INTO beginning
    FROM ledger.shards s
    LEFT JOIN ledger.events e ON e.stream = s.stream AND e.shard = s.shard
    WHERE s.stream = a_stream AND s.shard = a_shard
    GROUP BY s.head;
    UPDATE ledger.shards s SET watermark = beginning
    WHERE s.stream = a_stream AND s.shard = a_shard AND s.epoch = an_epoch AND s.holder = a_holder
        AND s.lease_until > clock_timestamp();
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the lease on stream %, shard % at epoch % is no longer held', a_stream, a_shard, an_epoch
            USING ERRCODE = 'SVL01';
    END IF;
    RETURN beginning;
END
$$;
