-- Called by Keeper::leave.
DELETE FROM scheduler.instances WHERE holder = $1
