-- Removes an instance that shuts down. Run by store::instances::forget_instance.
DELETE FROM callback.instances WHERE address = $1
