-- Adds the missing shards of a stream. Shards are never removed, because their positions would be
-- lost. Run by migrate for each stream.
INSERT INTO ledger.shards (stream, shard)
SELECT $1, shard FROM generate_series(0, $2::integer - 1) AS shard
ON CONFLICT DO NOTHING
