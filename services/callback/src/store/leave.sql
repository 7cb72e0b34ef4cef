-- Called by Health: nobody need wait for us.
DELETE FROM callback.instances WHERE address = $1
