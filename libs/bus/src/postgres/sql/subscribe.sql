-- Creates the cursors of a subscription. Run by statements::subscribe.
SELECT bus.subscribe($1, $2, $3)
