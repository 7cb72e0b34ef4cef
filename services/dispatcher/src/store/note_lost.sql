-- Called by the registry loop: who is silent for too long is lost.
UPDATE dispatcher.workers SET state = 4 WHERE state IN (1, 2) AND seen_at < clock_timestamp() - $1::interval
