-- Records the results of pushes, except of tasks that were dropped or leased by another pusher
-- since. Run by statements::settle.
UPDATE dispatcher.queue_entries e
SET state = s.state, leased_by = NULL, due_at = statement_timestamp() + s.delay_ms * interval '1 millisecond',
    ended_at = CASE WHEN s.state = 2 /* CREATED */ THEN NULL ELSE statement_timestamp() END,
    body = CASE WHEN s.state = 2 /* CREATED */ THEN e.body ELSE '' END, fault = s.fault
FROM unnest($1::text[], $2::text[], $3::integer[], $4::smallint[], $5::bigint[], $6::text[])
    AS s (queue, name, tries, state, delay_ms, fault)
WHERE e.queue = s.queue AND e.name = s.name AND e.tries = s.tries AND e.leased_by = $7 AND e.state = 2 /* CREATED */
