-- Called by ListDispatches for a page: where the queue entries of pushed attempts stand.
SELECT name, queue, state, tries FROM dispatcher.queue_entries
WHERE (queue, name) IN (SELECT * FROM unnest($1::text[], $2::text[]))
