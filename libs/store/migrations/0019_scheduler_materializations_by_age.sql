-- Why: versions are listed newest first, of a workspace, of an asset and of those that wait for a decision; none of it
-- may read through a history of millions.
CREATE INDEX materializations_by_age ON scheduler.materializations (tenant, workspace, recorded_at, attempt_id, asset_key);
CREATE INDEX materializations_of_asset
    ON scheduler.materializations (tenant, workspace, asset_key, recorded_at, attempt_id);
-- 4 is QUARANTINED; few ever are.
CREATE INDEX materializations_quarantined
    ON scheduler.materializations (tenant, workspace, recorded_at, attempt_id, asset_key) WHERE state = 4;
