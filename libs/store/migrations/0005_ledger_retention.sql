-- Why: an ever-growing ledger slows all its readers. Each day is a partition, created in advance
-- and dropped as a whole, and only after an archive holds it and every shard has folded it. The
-- functions run as the tables' owner, which is not a login role.

-- Creates the missing partitions of today and of the days ahead, and returns their number. A day
-- with events in the default partition stays there, because it cannot be moved out while in use.
CREATE FUNCTION ledger.make_partitions(days_ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
AS $$
DECLARE
    a_day date;
    made integer := 0;
BEGIN
    -- Every instance may call this; the lock serializes the calls.
    PERFORM pg_advisory_xact_lock(7401);
    FOR a_day IN SELECT d::date FROM generate_series(current_date, current_date + days_ahead, '1 day') d LOOP
        CONTINUE WHEN to_regclass(ledger.partition_of(a_day)) IS NOT NULL;
        CONTINUE WHEN EXISTS (
            SELECT FROM ledger.events_default e WHERE e.recorded_at >= a_day AND e.recorded_at < a_day + 1);
        -- Created separately and then attached, which does not block appends, unlike CREATE TABLE
        -- ... PARTITION OF.
        EXECUTE format('CREATE TABLE %s (LIKE ledger.events INCLUDING ALL)', ledger.partition_of(a_day));
        -- The policies of ledger.events apply to reads through it; a partition that is named
        -- directly shows its rows only to these functions.
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

-- Records that an archive holds this many events of this day.
CREATE FUNCTION ledger.note_archived(a_day date, event_count bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
INSERT INTO ledger.archives (day, events) VALUES (a_day, event_count)
ON CONFLICT (day) DO UPDATE SET events = excluded.events, archived_at = clock_timestamp()
$$;

-- Drops the partition of a past day, or raises the reason why it must not be dropped.
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

-- Deletes up to at_most idempotency keys older than seven days and returns the number of deleted
-- keys.
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
