-- First part of a flush: the fence and the append. `ledger.append_held` appends what the holder has
-- folded and moves the watermark. It raises an error when the lease or the watermark is not the
-- expected one, so that no other part takes effect. Run by store::flush::statement.
SELECT ledger.append_held(1::smallint /* execution */, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) AS at
