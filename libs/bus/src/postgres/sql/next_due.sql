-- Seconds until a failed message is due again. Run by statements::next_due.
SELECT bus.next_due($1, $2)
