-- Called by ReplayMessage. Touches no row when the call was made before; waits for one that is under way.
INSERT INTO scheduler.requests (request_id, body) VALUES ($1, $2) ON CONFLICT DO NOTHING
