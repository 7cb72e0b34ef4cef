-- Why: a tenant with a limit on its runs has its open ones counted. With the tenant behind the shard the index that a
-- new holder loads its runs by serves that too, without one more entry per run.
DROP INDEX scheduler.runs_open;
CREATE INDEX runs_open ON scheduler.runs (shard, tenant) WHERE state < 5;
