-- Removes an instance that stops, so that the others take its share at once. Run by store::instances::delete.
DELETE FROM scheduler.instances WHERE holder = $1
