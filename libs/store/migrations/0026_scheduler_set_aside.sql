-- Why: a run with an event that cannot be folded must not stop its shard. The run keeps its state,
-- its later events are skipped, and this column gives an operator the reason. A rebuild by a
-- version that can fold the events resumes the run.
ALTER TABLE scheduler.runs ADD COLUMN set_aside text CONSTRAINT set_aside_has_a_reason CHECK (set_aside <> '');
