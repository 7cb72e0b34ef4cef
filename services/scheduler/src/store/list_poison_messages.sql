-- Lists the bus messages that wait for an operator, newest first. Run by
-- store::poison_messages::list.
SELECT subscription, topic, shard, position, place, tenant, error, tries, failed_at, payload
FROM bus.parked
WHERE due_at IS NULL AND failed_at <= $1
    AND (failed_at < $1 OR concat_ws(':', subscription, topic, shard, position, place) > $2)
    AND ($3::text IS NULL OR subscription = $3) AND ($4::smallint IS NULL OR topic = $4)
    AND ($5::text IS NULL OR tenant = $5) AND failed_at >= $7 AND failed_at < $8
ORDER BY failed_at DESC, concat_ws(':', subscription, topic, shard, position, place)
LIMIT $6
