-- Verifies a lease and moves its shard's watermark. Run first in every FencedTx, by
-- FencedTx::enter, and again by FencedTx::advance.
SELECT ledger.fence($1, $2, $3, $4, $5, $6)
