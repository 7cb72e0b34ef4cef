-- Called by the loop usage in the transaction that counts. Fewer rows than shards mean that another instance counted
-- meanwhile; then nothing here may count.
INSERT INTO quota.cursors AS cursor (shard, position)
SELECT shard, until FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) AS span (shard, after, until)
ON CONFLICT (shard) DO UPDATE
SET position = excluded.position
WHERE cursor.position = (
    SELECT after FROM unnest($1::smallint[], $2::bigint[]) AS span (shard, after) WHERE span.shard = excluded.shard)
