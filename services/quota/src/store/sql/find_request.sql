-- Finds the first answer to a request_id and the hash of its request. Run by store::requests::find.
SELECT body, answer FROM quota.requests WHERE tenant = $1 AND request_id = $2
