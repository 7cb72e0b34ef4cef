-- Called by the loop usage.
SELECT shard, position FROM quota.cursors
