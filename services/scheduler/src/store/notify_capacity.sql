-- Wakes the instances that listen for free run capacity. Run by store::limits::notify_capacity.
SELECT pg_notify($1, '')
