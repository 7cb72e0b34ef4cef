-- Called by TailLogs: which run it is, and whether it has ended.
SELECT run_number, plan_id, ended_at IS NOT NULL FROM scheduler.runs WHERE run_id = $1 AND workspace = $2
