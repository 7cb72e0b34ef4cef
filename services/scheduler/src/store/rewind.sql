-- Sets the watermark of a shard back to its first event and returns the position before it.
-- Run by store::rebuild::rewind.
SELECT ledger.rewind($1, $2, $3, $4)
