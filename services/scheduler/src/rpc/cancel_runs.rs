//! CancelRuns: cancels many runs on behalf of Servo itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_mesh::{Error, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::{RunId, ShardId, TenantId};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;

use super::Scheduler;
use super::support::errors;
use super::support::verdicts::refused_event;
use crate::forward::ForwardableCommand;
use crate::shards::{RunEvent, event_id};
use crate::store::runs::{self, RunAddress};

const RUNS_MAX: usize = 256;
/// How often a cancel is retried for runs that changed concurrently.
const RACES_MAX: usize = 5;

pub(super) async fn cancel_runs(
    scheduler: &Scheduler,
    request: mesh_pb::CancelRunsRequest,
) -> Result<mesh_pb::CancelRunsResponse, Error> {
    let count = request.runs.len();
    if count > RUNS_MAX {
        return Err(Error::bad_field(
            "runs",
            format!("has {count} entries; {RUNS_MAX} are allowed"),
        ));
    }
    let unknown = || {
        refused_event(
            Reason::RunNotFound,
            "there is no such run in this tenant and workspace",
        )
    };
    let mut results: Vec<mesh_pb::AppliedEvent> = request.runs.iter().map(|_| unknown()).collect();
    let mut left: Vec<usize> = (0..count).collect();
    for _ in 0..RACES_MAX {
        let by_shard = events(scheduler, &request, &left).await?;
        let submitted = by_shard.into_iter().map(|(shard, commands)| async move {
            let (indexes, commands): (Vec<usize>, Vec<ForwardableCommand>) =
                commands.into_iter().unzip();
            (indexes, scheduler.router.submit(shard, commands).await)
        });
        left.clear();
        for (indexes, answers) in futures::future::join_all(submitted).await {
            let answers = match answers {
                Ok(answers) => answers.into_iter().map(|answer| answer.applied).collect(),
                Err(error) => {
                    vec![refused_event(error.reason(), &error.to_string()); indexes.len()]
                }
            };
            for (index, applied) in indexes.into_iter().zip(answers) {
                left.extend((applied.refusal() == Reason::VersionConflict).then_some(index));
                results[index] = applied;
            }
        }
        if left.is_empty() {
            break;
        }
    }
    Ok(mesh_pb::CancelRunsResponse { results })
}

/// The cancel commands of these entries, by shard. A run that does not exist has none.
async fn events(
    scheduler: &Scheduler,
    request: &mesh_pb::CancelRunsRequest,
    indexes: &[usize],
) -> Result<BTreeMap<ShardId, Vec<(usize, ForwardableCommand)>>, Error> {
    let targets: Vec<Target<'_>> = indexes
        .iter()
        .filter_map(|index| Target::parse(*index, &request.runs[*index]))
        .collect();
    let addresses: Vec<RunAddress<'_>> = targets
        .iter()
        .map(|target| (&target.tenant, target.workspace, target.run_id))
        .collect();
    let rows = runs::list_versions(scheduler.reads.store.loops(), &addresses)
        .await
        .map_err(errors::store)?;
    let mut by_shard: BTreeMap<ShardId, Vec<(usize, ForwardableCommand)>> = BTreeMap::new();
    for (nth, version) in rows {
        let target = usize::try_from(nth - 1)
            .ok()
            .and_then(|nth| targets.get(nth));
        let Some(target) = target else {
            continue;
        };
        let version = u64::try_from(version).unwrap_or(0) + 1;
        let event = cancel(target, version, request.requested_by.clone());
        by_shard
            .entry(target.run_id.shard())
            .or_default()
            .push((target.index, event));
    }
    Ok(by_shard)
}

/// A run to cancel, with its index in the request.
struct Target<'a> {
    index: usize,
    tenant: TenantId,
    workspace: &'a str,
    run_id: RunId,
}

impl Target<'_> {
    /// `None` for malformed ids, which name a run that cannot exist.
    fn parse(index: usize, target: &mesh_pb::RunTarget) -> Option<Target<'_>> {
        Some(Target {
            index,
            tenant: target.tenant.parse().ok()?,
            workspace: &target.workspace,
            run_id: target.run_id.parse().ok()?,
        })
    }
}

fn cancel(
    target: &Target<'_>,
    version: u64,
    requested_by: Option<pb::Actor>,
) -> ForwardableCommand {
    let run_id = target.run_id;
    ForwardableCommand::Event(Arc::new(RunEvent {
        tenant: target.tenant.clone(),
        run_id,
        event_id: event_id(),
        idempotency_key: IdempotencyKey::run_control(&run_id, version).to_string(),
        body: Body::RunCancelRequested(pb::RunCancelRequested {
            run_id: run_id.to_string(),
            version,
            requested_by,
            by_system: true,
        }),
        trace: None,
    }))
}
