-- Why: claims are committed asynchronously, so a crash of Postgres may erase a claim whose worker
-- has begun. The task is then dispatched again, and must get another attempt number: each start of
-- Postgres since the task became ready skips a number. So the starts are recorded.
CREATE TABLE ledger.starts (
    started_at timestamptz PRIMARY KEY
);

-- Records the start of this Postgres and returns all known starts.
CREATE FUNCTION ledger.note_start() RETURNS SETOF timestamptz
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO ledger.starts (started_at) VALUES (pg_postmaster_start_time()) ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT s.started_at FROM ledger.starts s ORDER BY s.started_at;
END
$$;
