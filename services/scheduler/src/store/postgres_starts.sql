-- Records the present start of Postgres and lists all known starts. Run by
-- store::shards::postgres_starts.
SELECT ledger.note_start()
