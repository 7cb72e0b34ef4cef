-- Makes a message that was set aside due again. Run by statements::replay.
SELECT bus.replay($1, $2, $3, $4, $5)
