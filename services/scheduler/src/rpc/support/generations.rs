//! The generations of a run key.

use servo_mesh::{Error, Reason};
use servo_model::RunKey;

use super::errors;
use super::start_run::Call;
use crate::core::probes;
use crate::rpc::Scheduler;
use crate::run_lookup::{ExistingRun, RunQuery, find_runs};

/// Finds the newest run of a key, starting from a known one. Run ids are derived from the key and
/// the generation, so they can be probed without a list.
pub(crate) async fn newest(
    scheduler: &Scheduler,
    call: &Call,
    run: ExistingRun,
) -> Result<ExistingRun, Error> {
    let key = key(&run)?;
    let (mut newest, mut generation, mut missing) = (run, key.generation(), None);
    loop {
        let probes = probes(generation, missing);
        if probes.is_empty() {
            return Ok(newest);
        }
        let queries: Vec<RunQuery> = probes
            .iter()
            .map(|probe| query(scheduler, call, &key, *probe))
            .collect();
        let found = find_runs(scheduler.reads.store.loops(), &queries)
            .await
            .map_err(errors::store)?;
        for (probe, found) in probes.into_iter().zip(found) {
            match found.by_id {
                Some(run) => {
                    newest = run;
                    generation = probe;
                }
                None => {
                    missing = Some(probe);
                    break;
                }
            }
        }
    }
}

fn query(scheduler: &Scheduler, call: &Call, key: &RunKey, generation: u32) -> RunQuery {
    let (tenant, workspace) = (&call.tenant, &call.workspace);
    RunQuery {
        run_id: scheduler
            .run_ids
            .derive(tenant, workspace, &key.in_generation(generation)),
        tenant: tenant.clone(),
        workspace: workspace.to_string(),
        request_id: None,
    }
}

pub(crate) fn key(run: &ExistingRun) -> Result<RunKey, Error> {
    let unreadable = |error| {
        Error::new(
            Reason::Internal,
            format!("the key of run {}: {error}", run.run_id),
        )
    };
    run.requested.run_key.parse().map_err(unreadable)
}

/// The key of the next generation.
pub(crate) fn next(run: &ExistingRun) -> Result<RunKey, Error> {
    let message = "the run key has the maximum number of generations; choose another key";
    key(run)?
        .next()
        .ok_or_else(|| Error::new(Reason::InvalidState, message))
}
