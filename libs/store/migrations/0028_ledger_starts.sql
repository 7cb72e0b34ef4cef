-- Why: claims are committed asynchronously, so a crash of Postgres may erase one whose worker has begun. The task is then
-- given out again, and must not be given out under the same attempt: each start of Postgres since it became ready skips a
-- number. So the starts are kept.
CREATE TABLE ledger.starts (
    started_at timestamptz PRIMARY KEY
);

-- Notes that this Postgres runs, and answers all starts that are known.
CREATE FUNCTION ledger.note_start() RETURNS SETOF timestamptz
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO ledger.starts (started_at) VALUES (pg_postmaster_start_time()) ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT s.started_at FROM ledger.starts s ORDER BY s.started_at;
END
$$;
