//! The runs that share a key.

use servo_mesh::{Error, Reason};
use servo_model::RunKey;

use super::start::Call;
use super::{Scheduler, answer};
use crate::core::probes;
use crate::run_lookup::RunQuery;
use crate::store::{ExistingRun, find_runs};

/// The newest run of a key, from one that is known. Run ids are derived, so no list of them is needed.
pub(super) async fn newest(
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
        let wanted: Vec<RunQuery> = probes
            .iter()
            .map(|probe| wanted(scheduler, call, &key, *probe))
            .collect();
        let found = find_runs(scheduler.store.loops(), &wanted)
            .await
            .map_err(answer::store)?;
        for (probe, found) in probes.into_iter().zip(found) {
            match found.by_id {
                Some(run) => (newest, generation) = (run, probe),
                None => {
                    missing = Some(probe);
                    break;
                }
            }
        }
    }
}

fn wanted(scheduler: &Scheduler, call: &Call, key: &RunKey, generation: u32) -> RunQuery {
    let (tenant, workspace) = (&call.tenant, &call.workspace);
    RunQuery {
        run_id: scheduler
            .run_ids
            .derive(tenant, workspace, &key.in_generation(generation)),
        tenant: tenant.to_string(),
        workspace: workspace.to_string(),
        request_id: None,
    }
}

pub(super) fn key(run: &ExistingRun) -> Result<RunKey, Error> {
    let unreadable = |error| {
        Error::new(
            Reason::Internal,
            format!("the key of run {}: {error}", run.run_id),
        )
    };
    run.requested.run_key.parse().map_err(unreadable)
}

/// The key of the run after this one.
pub(super) fn next(run: &ExistingRun) -> Result<RunKey, Error> {
    let message = "its key was used as often as a key can be; choose another";
    key(run)?
        .next()
        .ok_or_else(|| Error::new(Reason::InvalidState, message))
}
