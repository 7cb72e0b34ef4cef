-- Sets the tenant that row security admits, local to the transaction, so that a pooled session does
-- not keep it. Run first in every TenantTx, by TenantStore::begin.
SELECT set_config('servo.tenant', $1, true)
