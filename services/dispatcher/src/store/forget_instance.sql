-- Removes an instance that shuts down. Run by store::instances::forget_instance.
DELETE FROM dispatcher.instances WHERE instance = $1
