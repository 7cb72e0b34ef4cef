-- Reads the queue entries of pushed attempts. Run by store::queue_entries::entries_of.
SELECT name, queue, state, tries FROM dispatcher.queue_entries
WHERE (queue, name) IN (SELECT * FROM unnest($1::text[], $2::text[]))
