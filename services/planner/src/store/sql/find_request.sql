-- Called first by every mutation: the first answer to a request_id, and the hash of what was asked.
SELECT body, answer FROM planner.requests WHERE tenant = $1 AND workspace = $2 AND request_id = $3
