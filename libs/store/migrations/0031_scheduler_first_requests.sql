-- Why: a call that replays a set-aside message leaves no event, and the message is deleted once it
-- is processed; the call must be recorded so that a repeat of it is recognized.
CREATE TABLE scheduler.requests (
    -- Without a tenant, because only operators make such calls.
    request_id text COLLATE "C" PRIMARY KEY CHECK (request_id <> ''),
    -- The sha256 of method and body.
    body bytea NOT NULL CHECK (length(body) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Expiry scans by age.
CREATE INDEX requests_by_age ON scheduler.requests (created_at);
