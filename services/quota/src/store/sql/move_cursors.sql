-- Moves the cursors in the transaction that adds the sums. Fewer rows than shards mean that another
-- instance has counted concurrently; then this transaction must not commit. Run by
-- store::usage::move_cursors.
INSERT INTO quota.cursors AS cursor (shard, position)
SELECT shard, until FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) AS span (shard, after, until)
ON CONFLICT (shard) DO UPDATE
SET position = excluded.position
WHERE cursor.position = (
    SELECT after FROM unnest($1::smallint[], $2::bigint[]) AS span (shard, after) WHERE span.shard = excluded.shard)
