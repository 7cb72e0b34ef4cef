-- Records why a run is set aside; the first reason stays. Run by store::runs::set_aside.
UPDATE scheduler.runs SET set_aside = $3 WHERE run_id = $1 AND tenant = $2 AND set_aside IS NULL
