-- Marks silent workers as lost. A worker that is pushed to is seen only when it registers. Run by
-- store::workers::note_lost.
UPDATE dispatcher.workers SET state = 4 /* LOST */
WHERE state IN (1 /* ACTIVE */, 2 /* DRAINING */)
    AND seen_at < clock_timestamp() - CASE WHEN push_url = '' THEN $1::interval ELSE $2::interval END
