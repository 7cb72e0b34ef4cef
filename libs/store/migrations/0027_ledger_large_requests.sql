-- Why: a request may name ten thousand partitions and carry 64 KB of configuration, which together
-- exceed the limit of other events. Existing rows need no validation, because the new limit is not
-- stricter.
ALTER TABLE ledger.events DROP CONSTRAINT payload_65536_bytes_max;
ALTER TABLE ledger.events ADD CONSTRAINT payload_bytes_max
    -- 20 is RunRequested.
    CHECK (octet_length(payload) <= CASE WHEN type = 20 THEN 1048576 ELSE 65536 END) NOT VALID;
