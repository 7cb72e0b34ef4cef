-- Called first in every TenantTx, by TenantStore::begin. Local to the transaction, so a pooled session keeps nothing.
SELECT set_config('servo.tenant', $1, true)
