-- Called by rebuild::empty, until nothing is left: some runs of a shard with all that was folded of them.
WITH batch AS (
    SELECT run_number, run_id FROM scheduler.runs WHERE shard = $1 AND run_number >= $2 LIMIT $3
), tasks AS (
    DELETE FROM scheduler.tasks t USING batch WHERE t.run_number = batch.run_number
), made AS (
    DELETE FROM scheduler.materializations m USING batch WHERE m.run_number = batch.run_number
), checks AS (
    DELETE FROM scheduler.check_results k USING batch WHERE k.run_number = batch.run_number
), conflicts AS (
    DELETE FROM scheduler.run_key_conflicts c USING batch WHERE c.run_id = batch.run_id
), runs AS (
    DELETE FROM scheduler.runs r USING batch WHERE r.run_number = batch.run_number
)
SELECT count(*) FROM batch
