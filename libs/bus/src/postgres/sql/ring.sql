-- Wakes the consumers of a topic. Run by statements::ring, never inside the publishing transaction,
-- because NOTIFY takes a lock that serializes all commits.
SELECT pg_notify($1, $2)
