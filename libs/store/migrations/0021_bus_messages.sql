-- Why: publishes changes of runs to remote subscribers. A message is written by the statement that
-- folds, under the lock of its shard, with the position up to which the shard was folded: positions
-- of a shard grow in commit order, so a reader that follows them does not miss a late commit.
CREATE TABLE bus.messages (
    topic smallint NOT NULL,
    shard smallint NOT NULL,
    position bigint NOT NULL CHECK (position > 0),
    -- The order among messages of the same position.
    place integer NOT NULL CHECK (place >= 0),
    -- The run that the message is about.
    key uuid NOT NULL,
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    published_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    payload bytea NOT NULL,
    PRIMARY KEY (topic, shard, position, place)
);

-- The position of each subscription in each shard, and the consumer that currently reads it.
CREATE TABLE bus.cursors (
    -- Begins with the name of the service that reads it.
    subscription text COLLATE "C" NOT NULL CHECK (subscription <> ''),
    topic smallint NOT NULL,
    shard smallint NOT NULL,
    position bigint NOT NULL,
    place integer NOT NULL,
    holder text COLLATE "C",
    lease_until timestamptz,
    PRIMARY KEY (subscription, topic, shard)
) WITH (fillfactor = 50);

-- Messages that a consumer could not process: to be retried, or, after too many tries, set aside.
CREATE TABLE bus.parked (
    subscription text COLLATE "C" NOT NULL CHECK (subscription <> ''),
    topic smallint NOT NULL,
    shard smallint NOT NULL,
    position bigint NOT NULL,
    place integer NOT NULL,
    key uuid NOT NULL,
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    workspace text COLLATE "C" NOT NULL CHECK (workspace <> ''),
    published_at timestamptz NOT NULL,
    payload bytea NOT NULL,
    tries integer NOT NULL CHECK (tries >= 0),
    error text NOT NULL,
    -- The time of the next try; NULL once it is set aside.
    due_at timestamptz,
    failed_at timestamptz NOT NULL,
    PRIMARY KEY (subscription, topic, shard, position, place)
);
CREATE INDEX parked_due ON bus.parked (subscription, topic, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX parked_poison ON bus.parked (failed_at) WHERE due_at IS NULL;

CREATE FUNCTION bus.publish(
    a_topic smallint, shards smallint[], positions bigint[], keys uuid[], tenants text[], workspaces text[],
    payloads bytea[]
) RETURNS bigint
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    WITH published AS (
        INSERT INTO bus.messages (topic, shard, position, place, key, tenant, workspace, payload)
        SELECT a_topic, n.shard, n.position,
            row_number() OVER (PARTITION BY n.shard, n.position ORDER BY n.number) - 1,
            n.key, n.tenant, n.workspace, n.payload
        FROM unnest(shards, positions, keys, tenants, workspaces, payloads) WITH ORDINALITY
            AS n (shard, position, key, tenant, workspace, payload, number)
        RETURNING 1
    )
    SELECT count(*) FROM published
$$;

CREATE FUNCTION bus.check_subscriber(a_subscription text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF session_user <> 'servo_' || split_part(a_subscription, '.', 1) || '_loop' THEN
        RAISE EXCEPTION 'role % may not read for the subscription %', session_user, a_subscription
            USING ERRCODE = 'insufficient_privilege', HINT = 'a subscription begins with the name of its service';
    END IF;
END
$$;

-- Creates a subscription that begins with later messages; a repeat changes nothing.
CREATE FUNCTION bus.subscribe(a_subscription text, a_topic smallint, shard_count smallint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM bus.check_subscriber(a_subscription);
    INSERT INTO bus.cursors (subscription, topic, shard, position, place)
    SELECT a_subscription, a_topic, s.shard, coalesce(m.position, 0), coalesce(m.place, 0)
    FROM generate_series(0, shard_count - 1) AS s (shard)
    LEFT JOIN LATERAL (
        SELECT position, place FROM bus.messages
        WHERE topic = a_topic AND messages.shard = s.shard ORDER BY position DESC, place DESC LIMIT 1
    ) AS m ON true
    ON CONFLICT DO NOTHING;
END
$$;

-- Claims messages for a consumer: first those to be retried, then those of shards that no other
-- consumer reads.
CREATE FUNCTION bus.claim(a_subscription text, a_topic smallint, a_holder text, ttl interval, at_most integer)
RETURNS TABLE (
    shard smallint, "position" bigint, place integer, tries integer, key uuid, tenant text, workspace text,
    published_at timestamptz, payload bytea
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    held smallint[];
BEGIN
    PERFORM bus.check_subscriber(a_subscription);
    RETURN QUERY
    UPDATE bus.parked p SET due_at = clock_timestamp() + ttl
    WHERE (p.subscription, p.topic, p.shard, p.position, p.place) IN (
        SELECT d.subscription, d.topic, d.shard, d.position, d.place FROM bus.parked d
        WHERE d.subscription = a_subscription AND d.topic = a_topic AND d.due_at <= clock_timestamp()
        ORDER BY d.due_at LIMIT at_most FOR UPDATE SKIP LOCKED)
    RETURNING p.shard, p.position, p.place, p.tries, p.key, p.tenant, p.workspace, p.published_at, p.payload;
    held := ARRAY(
        SELECT c.shard FROM bus.cursors c
        WHERE c.subscription = a_subscription AND c.topic = a_topic
            AND (c.lease_until IS NULL OR c.lease_until <= clock_timestamp() OR c.holder = a_holder)
            AND EXISTS (
                SELECT FROM bus.messages m
                WHERE m.topic = a_topic AND m.shard = c.shard AND (m.position, m.place) > (c.position, c.place))
        ORDER BY c.shard FOR UPDATE SKIP LOCKED);
    UPDATE bus.cursors c SET holder = a_holder, lease_until = clock_timestamp() + ttl
    WHERE c.subscription = a_subscription AND c.topic = a_topic AND c.shard = ANY (held);
    RETURN QUERY
    SELECT m.shard, m.position, m.place, 0, m.key, m.tenant, m.workspace, m.published_at, m.payload
    FROM bus.cursors c
    CROSS JOIN LATERAL (
        SELECT * FROM bus.messages m
        WHERE m.topic = a_topic AND m.shard = c.shard AND (m.position, m.place) > (c.position, c.place)
        ORDER BY m.position, m.place LIMIT at_most
    ) AS m
    WHERE c.subscription = a_subscription AND c.topic = a_topic AND c.shard = ANY (held)
    ORDER BY m.shard, m.position, m.place;
END
$$;

-- Records the results of messages. Results under a lost lease change nothing, because the new
-- holder delivers the messages again.
CREATE FUNCTION bus.settle(
    a_subscription text, a_topic smallint, a_holder text,
    -- The new cursor of each shard.
    c_shards smallint[], c_positions bigint[], c_places integer[],
    -- Processed in a retry.
    d_shards smallint[], d_positions bigint[], d_places integer[],
    -- Failed; those without a delay are set aside.
    n_shards smallint[], n_positions bigint[], n_places integer[], n_tries integer[], n_errors text[],
    n_delays double precision[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM bus.check_subscriber(a_subscription);
    INSERT INTO bus.parked AS p (subscription, topic, shard, position, place, key, tenant, workspace, published_at, payload,
        tries, error, due_at, failed_at)
    SELECT a_subscription, a_topic, m.shard, m.position, m.place, m.key, m.tenant, m.workspace, m.published_at, m.payload,
        n.tries, n.error, clock_timestamp() + make_interval(secs => n.delay), clock_timestamp()
    FROM unnest(n_shards, n_positions, n_places, n_tries, n_errors, n_delays)
        AS n (shard, position, place, tries, error, delay)
    JOIN bus.messages m
        ON m.topic = a_topic AND m.shard = n.shard AND m.position = n.position AND m.place = n.place
    JOIN bus.cursors c
        ON c.subscription = a_subscription AND c.topic = a_topic AND c.shard = n.shard AND c.holder = a_holder
            AND c.lease_until > clock_timestamp() AND (c.position, c.place) < (n.position, n.place)
    WHERE n.tries = 1
    ON CONFLICT DO NOTHING;
    UPDATE bus.parked p
    SET tries = n.tries, error = n.error, due_at = clock_timestamp() + make_interval(secs => n.delay),
        failed_at = clock_timestamp()
    FROM unnest(n_shards, n_positions, n_places, n_tries, n_errors, n_delays)
        AS n (shard, position, place, tries, error, delay)
    WHERE n.tries > 1 AND p.subscription = a_subscription AND p.topic = a_topic AND p.shard = n.shard
        AND p.position = n.position AND p.place = n.place;
    DELETE FROM bus.parked p
    USING unnest(d_shards, d_positions, d_places) AS d (shard, position, place)
    WHERE p.subscription = a_subscription AND p.topic = a_topic AND p.shard = d.shard AND p.position = d.position
        AND p.place = d.place;
    UPDATE bus.cursors c
    SET position = n.position, place = n.place, holder = NULL, lease_until = NULL
    FROM unnest(c_shards, c_positions, c_places) AS n (shard, position, place)
    WHERE c.subscription = a_subscription AND c.topic = a_topic AND c.shard = n.shard AND c.holder = a_holder
        AND c.lease_until > clock_timestamp() AND (c.position, c.place) < (n.position, n.place);
END
$$;

-- Returns the seconds until the next retry; NULL when there is none.
CREATE FUNCTION bus.next_due(a_subscription text, a_topic smallint) RETURNS double precision
LANGUAGE sql SECURITY DEFINER STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT extract(epoch FROM min(due_at) - clock_timestamp())::double precision FROM bus.parked
    WHERE subscription = a_subscription AND topic = a_topic AND due_at IS NOT NULL
$$;

-- Schedules a message that was set aside for another try; returns whether it exists.
CREATE FUNCTION bus.replay(a_subscription text, a_topic smallint, a_shard smallint, a_position bigint, a_place integer)
RETURNS boolean
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    WITH replayed AS (
        UPDATE bus.parked SET due_at = clock_timestamp()
        WHERE subscription = a_subscription AND topic = a_topic AND shard = a_shard AND position = a_position
            AND place = a_place
        RETURNING 1
    )
    SELECT EXISTS (SELECT FROM replayed)
$$;

-- Deletes a batch of old messages that every subscription has passed; returns their number.
CREATE FUNCTION bus.expire(a_topic smallint, older_than interval, at_most integer) RETURNS bigint
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    WITH old AS (
        SELECT m.topic, m.shard, m.position, m.place
        FROM (SELECT DISTINCT shard FROM ledger.shards) AS s
        CROSS JOIN LATERAL (
            SELECT * FROM bus.messages m
            WHERE m.topic = a_topic AND m.shard = s.shard
            ORDER BY m.position, m.place LIMIT at_most
        ) AS m
        WHERE m.published_at < clock_timestamp() - older_than
            AND NOT EXISTS (
                SELECT FROM bus.cursors c
                WHERE c.topic = a_topic AND c.shard = m.shard AND (c.position, c.place) < (m.position, m.place))
        LIMIT at_most
    ), gone AS (
        DELETE FROM bus.messages m USING old
        WHERE m.topic = old.topic AND m.shard = old.shard AND m.position = old.position AND m.place = old.place
        RETURNING 1
    )
    SELECT count(*) FROM gone
$$;
