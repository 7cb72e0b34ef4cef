-- Why: the open runs of a tenant with a run limit are counted. With the tenant after the shard, the
-- index that a new holder loads its runs by serves that too, without another index entry per run.
DROP INDEX scheduler.runs_open;
CREATE INDEX runs_open ON scheduler.runs (shard, tenant) WHERE state < 5;
