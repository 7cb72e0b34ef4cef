-- Called by Keeper::note_instance: says that we live, and answers how many do.
WITH noted AS (
    INSERT INTO scheduler.instances (holder, address, seen_at) VALUES ($1, $2, clock_timestamp())
    ON CONFLICT (holder) DO UPDATE SET seen_at = excluded.seen_at
), gone AS (
    DELETE FROM scheduler.instances WHERE seen_at < clock_timestamp() - interval '1 minute' AND holder <> $1
)
SELECT count(*) FILTER (WHERE holder <> $1) + 1
FROM scheduler.instances WHERE seen_at > clock_timestamp() - make_interval(secs => $3)
