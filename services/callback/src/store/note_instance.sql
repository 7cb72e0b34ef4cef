-- Called by Health: says that beats are taken here. Whoever was silent for too long, or could not store a beat, is
-- healthy from now on only; so is everybody when an instance has to be given up, whose workers must find another first.
WITH given_up AS (
    DELETE FROM callback.instances
    WHERE address <> $1 AND good_until < clock_timestamp() - make_interval(secs => $4)
    RETURNING address
)
INSERT INTO callback.instances AS i (address, healthy_since, good_until)
VALUES ($1, clock_timestamp(), clock_timestamp() + make_interval(secs => $2))
ON CONFLICT (address) DO UPDATE
SET healthy_since = CASE
        WHEN $3 OR i.good_until < clock_timestamp() OR EXISTS (SELECT FROM given_up) THEN excluded.healthy_since
        ELSE i.healthy_since END,
    good_until = excluded.good_until
