-- Why: beats and lines are no facts and go when they are old. Lines come in the order of time, so a summary per block range
-- finds the old ones and costs an append nothing; beats are few.
CREATE INDEX logs_by_age ON callback.logs USING brin (received_at) WITH (pages_per_range = 32, autosummarize = on);

-- What a worker said of its attempt with its last beat.
ALTER TABLE callback.heartbeats
    ADD COLUMN progress_ppm integer CHECK (progress_ppm BETWEEN 0 AND 1000000),
    ADD COLUMN progress_message text;
