-- Why: versions are listed newest first, by workspace, by asset and by pending decision; none of
-- these lists may scan a history of millions.
CREATE INDEX materializations_by_age ON scheduler.materializations (tenant, workspace, recorded_at, attempt_id, asset_key);
CREATE INDEX materializations_of_asset
    ON scheduler.materializations (tenant, workspace, asset_key, recorded_at, attempt_id);
-- 4 is QUARANTINED; such rows are rare.
CREATE INDEX materializations_quarantined
    ON scheduler.materializations (tenant, workspace, recorded_at, attempt_id, asset_key) WHERE state = 4;
