-- Lists the newest lease epoch of each admission shard. Run by store::shards::admission_epochs.
SELECT shard, epoch FROM ledger.shards WHERE stream = $1
