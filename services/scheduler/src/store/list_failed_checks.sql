-- Lists the check results that did not pass, newest first. Run by store::checks::list.
SELECT k.attempt_id, k.place, k.asset_key, k.partition_key, k.ordinal, k.item, k.recorded_at, k.result, r.run_id, r.plan_id
FROM scheduler.check_results k
JOIN scheduler.runs r ON r.run_number = k.run_number
WHERE k.tenant = $1 AND k.workspace = $2 AND NOT k.passed
    AND (k.recorded_at, k.attempt_id, k.place) < ($3, $4, $5)
ORDER BY k.recorded_at DESC, k.attempt_id DESC, k.place DESC
LIMIT $6
