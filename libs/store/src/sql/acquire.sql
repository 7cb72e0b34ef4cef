-- Acquires free shards. Run by Leases::acquire.
SELECT shard, epoch, watermark FROM ledger.acquire($1, $2, $3, $4, $5, $6, $7)
