-- Returns the last counted position of each shard. Run by store::usage::read_cursors.
SELECT shard, position FROM quota.cursors
