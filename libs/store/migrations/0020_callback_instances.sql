-- Why: an attempt whose heartbeats cannot be delivered is not lost. Each callback instance records
-- that it accepts heartbeats, and since when without a gap; the scheduler checks this before it
-- declares an attempt lost.
CREATE TABLE callback.instances (
    -- The listen address: an instance that restarts there takes over the row.
    address text COLLATE "C" PRIMARY KEY CHECK (address <> ''),
    -- Since when every received heartbeat was stored.
    healthy_since timestamptz NOT NULL,
    -- Not healthy after this time unless it is updated.
    good_until timestamptz NOT NULL
) WITH (fillfactor = 50);
