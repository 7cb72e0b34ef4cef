-- Called by every mutation: the first answer to a request_id, and the hash of what was asked.
SELECT body, answer FROM quota.requests WHERE tenant = $1 AND request_id = $2
