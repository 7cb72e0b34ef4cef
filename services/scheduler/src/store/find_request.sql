-- Called by ReplayMessage.
SELECT body FROM scheduler.requests WHERE request_id = $1
