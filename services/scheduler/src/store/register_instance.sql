-- Registers this instance as alive, removes instances that were silent for a minute, and counts the living ones.
-- Run by store::instances::register.
WITH noted AS (
    INSERT INTO scheduler.instances (holder, address, seen_at) VALUES ($1, $2, clock_timestamp())
    ON CONFLICT (holder) DO UPDATE SET seen_at = excluded.seen_at
), gone AS (
    DELETE FROM scheduler.instances WHERE seen_at < clock_timestamp() - interval '1 minute' AND holder <> $1
)
SELECT count(*) FILTER (WHERE holder <> $1) + 1
FROM scheduler.instances WHERE seen_at > clock_timestamp() - make_interval(secs => $3)
