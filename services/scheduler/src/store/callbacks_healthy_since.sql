-- Returns since when every callback instance accepts heartbeats; NULL while one of them does not.
-- Run by store::heartbeats::callbacks_healthy_since.
SELECT CASE WHEN bool_and(good_until >= clock_timestamp()) THEN max(healthy_since) END FROM callback.instances
