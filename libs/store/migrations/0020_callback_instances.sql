-- Why: whoever beats against a closed door is not lost. Each instance of the callback notes that it takes beats, and since
-- when without a gap; the scheduler looks here before it declares an attempt lost.
CREATE TABLE callback.instances (
    -- Where it listens: an instance that comes back there takes its note over.
    address text COLLATE "C" PRIMARY KEY CHECK (address <> ''),
    -- Since when every beat that came was stored.
    healthy_since timestamptz NOT NULL,
    -- Without a further note by then it is not healthy.
    good_until timestamptz NOT NULL
) WITH (fillfactor = 50);
