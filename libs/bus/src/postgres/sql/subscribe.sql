-- Called by PostgresBus::subscribe.
SELECT bus.subscribe($1, $2, $3)
