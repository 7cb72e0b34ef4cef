-- Finds the first answer to a request_id and the hash of its request. Run by store::requests::find.
SELECT body, answer FROM planner.requests WHERE tenant = $1 AND workspace = $2 AND request_id = $3
