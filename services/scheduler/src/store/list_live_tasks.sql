-- Lists the tasks of a workspace that have an attempt in flight, by plan. Run by
-- store::tasks::list_live.
WITH open AS MATERIALIZED (
    SELECT r.run_number, r.plan_id
    FROM scheduler.runs r
    WHERE r.state < 5 /* open */ AND r.tenant = $1 AND r.workspace = $2 AND r.plan_id IS NOT NULL
)
SELECT DISTINCT o.plan_id, t.ordinal
FROM open o
JOIN scheduler.tasks t ON t.run_number = o.run_number
WHERE t.state BETWEEN 4 /* QUEUED */ AND 6 /* RUNNING */
