-- Called by ReplayMessage.
SELECT bus.replay($1, $2, $3, $4, $5)
