-- Counts and hashes the rows of a table; the sum of the hashes does not depend on the order of the
-- rows. The table name is replaced. Run by store::rebuild::digest.
SELECT count(*), coalesce(sum(('x' || substr(md5(r::text), 1, 15))::bit(60)::bigint)::text, '')
FROM scheduler.runs r
