-- Why: heartbeats and log lines are not facts and are deleted when they are old. Log lines are
-- inserted in the order of time, so a summary per block range finds the old ones and costs an
-- append nothing; heartbeats are few.
CREATE INDEX logs_by_age ON callback.logs USING brin (received_at) WITH (pages_per_range = 32, autosummarize = on);

-- The progress that a worker reported with its last heartbeat.
ALTER TABLE callback.heartbeats
    ADD COLUMN progress_ppm integer CHECK (progress_ppm BETWEEN 0 AND 1000000),
    ADD COLUMN progress_message text;
