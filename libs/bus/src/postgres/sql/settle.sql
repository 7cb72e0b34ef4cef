-- Advances cursors and stores failed messages. Run by statements::settle.
SELECT bus.settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
