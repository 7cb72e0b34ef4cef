-- Returns the time. Run by store::shards::now.
SELECT clock_timestamp()
