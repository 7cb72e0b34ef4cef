-- Finds the body digest that was recorded for a request id. Run by store::requests::record.
SELECT body FROM scheduler.requests WHERE request_id = $1
