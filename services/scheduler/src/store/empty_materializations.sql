-- Called by rebuild: what was made by runs that are folded anew, of each shard those from a number on. A run's number tells
-- its shard, and no index leads from a run to what it made: all of them at once is one look at every row.
DELETE FROM scheduler.materializations m
USING unnest($1::smallint[], $2::bigint[]) AS s (shard, first)
WHERE m.run_number % $3 = s.shard AND m.run_number >= s.first
