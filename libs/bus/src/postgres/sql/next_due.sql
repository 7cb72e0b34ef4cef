-- Called by PostgresBus::wait.
SELECT bus.next_due($1, $2)
