-- Why: a ledger that grows for ever slows every reader of it. Days are partitions, made ahead of time and
-- dropped whole, and only when an archive holds them and every shard has folded them. The functions
-- run as the tables' owner, which nobody logs in as.

-- Makes the partitions of today and of the days ahead that are missing, and answers how many it made.
-- A day of which the default partition already holds events stays there: it cannot be cut out while in use.
CREATE FUNCTION ledger.make_partitions(days_ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
AS $$
DECLARE
    a_day date;
    made integer := 0;
BEGIN
    -- Every instance may call this; they take turns.
    PERFORM pg_advisory_xact_lock(7401);
    FOR a_day IN SELECT d::date FROM generate_series(current_date, current_date + days_ahead, '1 day') d LOOP
        CONTINUE WHEN to_regclass(ledger.partition_of(a_day)) IS NOT NULL;
        CONTINUE WHEN EXISTS (
            SELECT FROM ledger.events_default e WHERE e.recorded_at >= a_day AND e.recorded_at < a_day + 1);
        -- Made apart and attached, which stops no append: CREATE TABLE ... PARTITION OF would.
        EXECUTE format('CREATE TABLE %s (LIKE ledger.events INCLUDING ALL)', ledger.partition_of(a_day));
        -- The policies of ledger.events hold for whoever reads through it; a partition named directly shows
        -- its rows to nobody but these functions.
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY',
            ledger.partition_of(a_day));
        EXECUTE format('CREATE POLICY owner_maintains ON %s TO servo_owner USING (true)',
            ledger.partition_of(a_day));
        EXECUTE format('ALTER TABLE ledger.events ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)',
            ledger.partition_of(a_day), a_day, a_day + 1);
        made := made + 1;
    END LOOP;
    RETURN made;
END
$$;

CREATE FUNCTION ledger.partition_of(a_day date) RETURNS text
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$ SELECT 'ledger.events_' || to_char(a_day, 'YYYYMMDD') $$;

-- Notes that an archive holds this many events of this day.
CREATE FUNCTION ledger.note_archived(a_day date, event_count bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
INSERT INTO ledger.archives (day, events) VALUES (a_day, event_count)
ON CONFLICT (day) DO UPDATE SET events = excluded.events, archived_at = clock_timestamp()
$$;

-- Drops a past day's partition, or says why not.
CREATE FUNCTION ledger.drop_partition(a_day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
AS $$
DECLARE
    archived bigint := (SELECT a.events FROM ledger.archives a WHERE a.day = a_day);
    stored bigint;
    unfolded bigint;
BEGIN
    IF to_regclass(ledger.partition_of(a_day)) IS NULL THEN
        RAISE EXCEPTION 'there is no partition for %', a_day USING ERRCODE = 'undefined_table';
    ELSIF a_day >= current_date THEN
        RAISE EXCEPTION 'the partition of % may still grow', a_day USING ERRCODE = 'object_in_use';
    ELSIF archived IS NULL THEN
        RAISE EXCEPTION 'the partition of % is not archived', a_day
            USING ERRCODE = 'object_in_use', HINT = 'Archive it and call ledger.note_archived first.';
    END IF;
    EXECUTE format('SELECT count(*), count(*) FILTER (WHERE e.position > s.watermark)
        FROM %s e JOIN ledger.shards s ON s.stream = e.stream AND s.shard = e.shard',
        ledger.partition_of(a_day)) INTO stored, unfolded;
    IF stored <> archived THEN
        RAISE EXCEPTION 'the archive of % holds % events, its partition %', a_day, archived, stored
            USING ERRCODE = 'object_in_use', HINT = 'Archive it again.';
    ELSIF unfolded > 0 THEN
        RAISE EXCEPTION 'the partition of % holds % events that are not folded yet', a_day, unfolded
            USING ERRCODE = 'object_in_use';
    END IF;
    EXECUTE format('DROP TABLE %s', ledger.partition_of(a_day));
END
$$;

-- Deletes up to at_most idempotency keys older than seven days and answers how many it deleted.
CREATE FUNCTION ledger.expire_keys(at_most integer) RETURNS bigint
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
WITH expired AS (
    SELECT k.hash FROM ledger.keys k
    WHERE k.recorded_at < clock_timestamp() - interval '7 days'
    LIMIT at_most
), gone AS (
    DELETE FROM ledger.keys k USING expired x WHERE k.hash = x.hash RETURNING 1
)
SELECT count(*) FROM gone
$$;
