-- Deletes the materializations of the runs that are folded again: of each shard those from a run
-- number on. The run number contains the shard, and no index leads from a run to its
-- materializations, so one scan deletes those of all shards. Run by
-- store::rebuild::delete_materializations.
DELETE FROM scheduler.materializations m
USING unnest($1::smallint[], $2::bigint[]) AS s (shard, first)
WHERE m.run_number % $3 = s.shard AND m.run_number >= s.first
