-- Called by Lane::learn_epochs.
SELECT shard, epoch FROM ledger.shards WHERE stream = $1
