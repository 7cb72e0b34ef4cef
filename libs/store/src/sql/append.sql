-- Appends events. Run by append_validated, for the flushes of Ledger and for Tx::append.
SELECT outcome, stream, shard, position, event_id, recorded_at
FROM ledger.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
