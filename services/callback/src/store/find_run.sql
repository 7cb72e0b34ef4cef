-- Reads a run's number, its plan id and whether it has ended. Run by store::runs::find_run.
SELECT run_number, plan_id, ended_at IS NOT NULL FROM scheduler.runs WHERE run_id = $1 AND workspace = $2
