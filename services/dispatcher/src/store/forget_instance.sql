-- Called when this instance leaves.
DELETE FROM dispatcher.instances WHERE instance = $1
