-- Called by the registry loop: who is silent for too long is lost. Who is pushed to says nothing but its registrations.
UPDATE dispatcher.workers SET state = 4
WHERE state IN (1, 2) AND seen_at < clock_timestamp() - CASE WHEN push_url = '' THEN $1::interval ELSE $2::interval END
