-- Records that this instance is alive, deletes stale rows and counts the living instances. Run by
-- store::instances::note_instance.
WITH gone AS (
    DELETE FROM dispatcher.instances WHERE seen_at < clock_timestamp() - 10 * $2::interval
), here AS (
    INSERT INTO dispatcher.instances AS i (instance, seen_at) VALUES ($1, clock_timestamp())
    ON CONFLICT (instance) DO UPDATE SET seen_at = clock_timestamp()
    RETURNING instance
)
SELECT 1 + count(*) FROM dispatcher.instances i
WHERE i.seen_at > clock_timestamp() - $2::interval AND i.instance <> (SELECT instance FROM here)
