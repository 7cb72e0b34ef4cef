DELETE FROM scheduler.instances WHERE holder = $1
