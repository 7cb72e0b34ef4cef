-- Called by the migration for each stream. Shards are never taken away: positions in them would be lost.
INSERT INTO ledger.shards (stream, shard)
SELECT $1, shard FROM generate_series(0, $2::integer - 1) AS shard
ON CONFLICT DO NOTHING
