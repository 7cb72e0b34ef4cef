-- Deletes a batch of runs of a shard, from a run number on, with their tasks, checks and conflicts.
-- Returns the last run number, NULL when no run is left. Run by store::rebuild::delete_runs.
WITH batch AS (
    SELECT run_number, run_id FROM scheduler.runs WHERE shard = $1 AND run_number >= $2 ORDER BY run_number LIMIT $3
), tasks AS (
    DELETE FROM scheduler.tasks t USING batch WHERE t.run_number = batch.run_number
), checks AS (
    DELETE FROM scheduler.check_results k USING batch WHERE k.run_number = batch.run_number
), conflicts AS (
    DELETE FROM scheduler.run_key_conflicts c USING batch WHERE c.run_id = batch.run_id
), runs AS (
    DELETE FROM scheduler.runs r USING batch WHERE r.run_number = batch.run_number
)
SELECT max(run_number) FROM batch
