-- Called by Lane::confirm_silence: since when all instances of the callback take beats; nothing while one does not.
SELECT CASE WHEN bool_and(good_until >= clock_timestamp()) THEN max(healthy_since) END FROM callback.instances
