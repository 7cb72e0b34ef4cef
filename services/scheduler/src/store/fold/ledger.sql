-- The first part of a flush: the fence. It raises, so that nothing beside it takes effect.
SELECT ledger.fold(1::smallint, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) AS at
