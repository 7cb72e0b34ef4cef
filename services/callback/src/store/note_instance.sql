-- Records that this instance accepts heartbeats. Run by store::instances::note_instance.
--
-- An instance that was silent for too long or could not store a heartbeat is healthy only from now
-- on. The same holds for every instance when one has to be given up, because its workers must find
-- another first.
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
