-- Why: topics without a subscription need no rows. The statement that publishes checks for one, so
-- a subscription gets everything that is committed after it.
CREATE OR REPLACE FUNCTION bus.publish(
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
        WHERE EXISTS (SELECT FROM bus.cursors WHERE topic = a_topic)
        RETURNING 1
    )
    SELECT count(*) FROM published
$$;
