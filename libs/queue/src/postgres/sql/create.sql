-- Adds tasks whose names are not known yet and sends one notification for all of them. Run by
-- statements::create.
WITH created AS (
    INSERT INTO dispatcher.queue_entries (queue, name, tenant, state, url, body, due_at)
    SELECT t.queue, t.name, t.tenant, 2 /* CREATED */, t.url, t.body, coalesce(t.not_before, statement_timestamp())
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::timestamptz[])
        AS t (queue, name, tenant, url, body, not_before)
    ON CONFLICT (queue, name) DO NOTHING
    RETURNING queue, name
), rung AS (
    SELECT pg_notify($7, '') WHERE EXISTS (SELECT FROM created)
)
SELECT queue, name, (SELECT count(*) FROM rung) FROM created
