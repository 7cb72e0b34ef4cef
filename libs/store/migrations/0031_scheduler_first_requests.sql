-- Why: a call that gives a poison message again leaves no event, and the message is gone once it is digested; that the call
-- was made must be known all the same, for whoever repeats it.
CREATE TABLE scheduler.requests (
    -- Of no tenant: operators alone make such calls.
    request_id text COLLATE "C" PRIMARY KEY CHECK (request_id <> ''),
    -- The sha256 of method and body.
    body bytea NOT NULL CHECK (length(body) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Expiry walks along the age.
CREATE INDEX requests_by_age ON scheduler.requests (created_at);
