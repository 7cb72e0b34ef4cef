-- Why: a run of which an event cannot be folded must not stop its shard. It keeps its state, its events are passed over from
-- there on, and this tells an operator why. A rebuild by a version that can fold them takes it up again.
ALTER TABLE scheduler.runs ADD COLUMN set_aside text CONSTRAINT set_aside_has_a_reason CHECK (set_aside <> '');
