//! RetryRun: starts the next generation of a run that has ended, with the tasks that are repeated.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use servo_mesh::{Caller, Error, Reason};
use servo_model::edges::EdgeResolution;
use servo_model::limits::PARTITION_KEYS_PER_CALL_MAX;
use servo_model::states::{Machine, MaterializationState};
use servo_model::{AttemptId, TaskKey};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1 as pb;
use servo_proto::v1::partition_selection::Partitions;
use servo_store::LoopStore;
use uuid::Uuid;

use super::Scheduler;
use super::support::start_run::{Call, RunStart, Started, start_run};
use super::support::{errors, generations, parse};
use crate::core::{Plan, RetryScope, TaskRow, repeated};
use crate::plans::Plans;
use crate::reads::{runs, tasks};
use crate::run_lookup::{ExistingRun, RunQuery};
use crate::store::materializations;
use crate::store::tasks as store;
use crate::store::tasks::StoredTask;

const RACES_MAX: usize = 5;

/// Which part of a run is repeated, by task ids.
pub(super) enum RepeatedPart {
    Failed,
    From(Vec<String>),
    All,
}

pub(super) async fn retry_run(
    scheduler: &Scheduler,
    caller: &Caller,
    request: pb::RetryRunRequest,
) -> Result<pb::RetryRunResponse, Error> {
    if request.request_id.is_empty() {
        let message =
            "request_id is empty; choose one, so that a repeated call does not start a second run";
        return Err(Error::new(Reason::RequestIdRequired, message));
    }
    let scope = scope(&request)?;
    let call = call(caller, &request)?;
    for _ in 0..RACES_MAX {
        let found = scheduler
            .run_lookup
            .find(query(&call, &request.run_id)?)
            .await?;
        if let Some(run) = found.by_request {
            call.check_repeat(&run.requested)?;
            let stored = runs::find(
                &scheduler.reads,
                &call.tenant,
                &request.workspace,
                &run.requested.run_id,
            )
            .await?;
            let accepted_event_id = crate::wire::ulid(run.event_id);
            return Ok(pb::RetryRunResponse {
                run: Some(stored),
                accepted_event_id,
            });
        }
        let parent = found
            .by_id
            .ok_or_else(|| errors::run_not_found(&request.run_id))?;
        let next = repeat(
            scheduler,
            &call,
            parent,
            &scope,
            request.use_current_deployment,
        )
        .await?;
        if let Started::Run { run, event_id } = start_run(scheduler, &call, next).await? {
            return Ok(pb::RetryRunResponse {
                run: Some(*run),
                accepted_event_id: event_id,
            });
        }
    }
    Err(Error::new(
        Reason::VersionConflict,
        "the run keeps being repeated concurrently; read it and try again",
    ))
}

fn call(caller: &Caller, request: &pb::RetryRunRequest) -> Result<Call, Error> {
    let (scope, current) = (
        request.scope.to_string(),
        request.use_current_deployment.to_string(),
    );
    let tasks = request.task_ids.join(",");
    let content = ["RetryRun", &request.run_id, &scope, &tasks, &current];
    Call::new(
        caller,
        (&request.tenant, &request.workspace),
        &request.request_id,
        &request.comment,
        &content,
    )
}

fn scope(request: &pb::RetryRunRequest) -> Result<RepeatedPart, Error> {
    let unknown = |_| {
        Error::bad_field(
            "scope",
            format!("{} is not a scope; leave it out for FAILED", request.scope),
        )
    };
    let scope = pb::RetryScope::try_from(request.scope).map_err(unknown)?;
    match (scope, request.task_ids.is_empty()) {
        (pb::RetryScope::FromTasks, true) => Err(Error::bad_field(
            "task_ids",
            "is empty; name the tasks to repeat, or take another scope",
        )),
        (pb::RetryScope::FromTasks, false) => Ok(RepeatedPart::From(request.task_ids.clone())),
        (_, false) => Err(Error::bad_field(
            "task_ids",
            "is only for scope FROM_TASKS; leave it empty",
        )),
        (pb::RetryScope::Unspecified | pb::RetryScope::Failed, true) => Ok(RepeatedPart::Failed),
        (pb::RetryScope::All, true) => Ok(RepeatedPart::All),
    }
}

fn query(call: &Call, run_id: &str) -> Result<RunQuery, Error> {
    Ok(RunQuery {
        tenant: call.tenant.clone(),
        workspace: call.workspace.to_string(),
        run_id: parse::run_id(run_id)?,
        request_id: Some(call.request_id.clone()),
    })
}

async fn repeat(
    scheduler: &Scheduler,
    call: &Call,
    parent: ExistingRun,
    scope: &RepeatedPart,
    use_current_deployment: bool,
) -> Result<RunStart, Error> {
    check_ended(&parent)?;
    let spec = parent.requested.spec.clone().unwrap_or_default();
    let deployment_id = if use_current_deployment {
        String::new()
    } else {
        parent.deployment_id.clone()
    };
    let spec_to_plan = pb::RunSpec {
        deployment_id,
        ..spec.clone()
    };
    let order = order(scheduler, call, &parent, scope, spec_to_plan).await?;
    let fingerprint = crate::wire::fingerprint(&parent.requested)
        .map_err(|error| Error::new(Reason::Internal, error.to_string()))?;
    let retry_of = parent.run_id.to_string();
    let newest = generations::newest(scheduler, call, parent).await?;
    check_ended(&newest)?;
    Ok(RunStart {
        key: generations::next(&newest)?,
        fingerprint,
        spec,
        order,
        retry_of,
    })
}

fn check_ended(run: &ExistingRun) -> Result<(), Error> {
    if run.state.is_terminal() {
        return Ok(());
    }
    let (run_id, state) = (run.run_id, run.state);
    let message = format!(
        "run {run_id} is {state}; only an ended run can be repeated: wait, or cancel it first"
    );
    Err(Error::new(Reason::InvalidState, message)
        .with("state", state.name())
        .with("run_id", run_id.to_string()))
}

/// The order for a repeat of `parent`: the tasks that run again, and the outputs that are reused.
pub(super) async fn order(
    scheduler: &Scheduler,
    call: &Call,
    parent: &ExistingRun,
    scope: &RepeatedPart,
    spec: pb::RunSpec,
) -> Result<mesh_pb::PlanOrder, Error> {
    let whole = mesh_pb::PlanOrder {
        spec: Some(spec.clone()),
        ..Default::default()
    };
    let Some(plan_id) = parent
        .plan_id
        .filter(|_| !matches!(scope, RepeatedPart::All))
    else {
        return match scope {
            RepeatedPart::From(names) => Err(errors::task_not_found(
                &parent.requested.run_id,
                &names.join(", "),
            )),
            RepeatedPart::Failed | RepeatedPart::All => Ok(whole),
        };
    };
    let loops = scheduler.reads.store.loops();
    let stored = Plans::read(loops, &call.tenant, call.workspace.as_str(), &plan_id).await;
    let gone = || Error::new(Reason::PlanNotFound, "the run's plan is no longer stored");
    let stored = stored.map_err(errors::store)?.ok_or_else(gone)?;
    let plan = scheduler
        .reads
        .plans
        .get_or_insert(&stored)
        .map_err(|error| Error::new(Reason::Internal, error.to_string()))?;
    let rows = store::list_of_runs(loops, &[parent.run_number])
        .await
        .map_err(errors::store)?;
    let ended = EndedTasks::new(&rows, &approved(loops, &rows).await?);
    let again = repeated(
        &plan,
        |ordinal| ended.succeeded.contains_key(&ordinal),
        &ended.scope(&plan, parent, scope)?,
    );
    if again.is_empty() {
        let message = format!(
            "run {} has nothing to repeat: everything succeeded",
            parent.run_id
        );
        return Err(Error::new(Reason::InvalidState, message).with("state", parent.state.name()));
    }
    let only_task_keys = again
        .iter()
        .map(|ordinal| plan.task(*ordinal).key.to_string())
        .collect();
    let spec = Some(as_planned(spec, &stored));
    let reused = stored
        .reused
        .into_iter()
        .chain(ended.reused(&plan, &again))
        .collect();
    Ok(mesh_pb::PlanOrder {
        spec,
        only_task_keys,
        reused,
        ..whole
    })
}

/// The attempts whose quarantined outputs were approved since.
async fn approved(loops: &LoopStore, rows: &[StoredTask]) -> Result<HashSet<AttemptId>, Error> {
    let task_rows = rows.iter().filter_map(StoredTask::task_row);
    let withheld = task_rows.filter(|row| row.resolution() == Some(EdgeResolution::Withheld));
    let attempts: Vec<Uuid> = withheld
        .filter_map(|row| row.attempt_id)
        .map(|id| Uuid::from_bytes(*id.as_bytes()))
        .collect();
    if attempts.is_empty() {
        return Ok(HashSet::new());
    }
    let resolvable = materializations::find_resolvable(loops, attempts)
        .await
        .map_err(errors::store)?;
    Ok(resolvable
        .into_iter()
        .filter(|(_, version)| version.state == MaterializationState::Promoted)
        .map(|(attempt, _)| attempt)
        .collect())
}

/// Names the partitions of the first plan, because a selection such as "latest" changes with time.
fn as_planned(spec: pb::RunSpec, plan: &pb::Plan) -> pb::RunSpec {
    let changes = |selection: &pb::PartitionSelection| {
        selection.only != 0 || matches!(selection.partitions, Some(Partitions::Latest(_)))
    };
    let reused = plan
        .reused
        .iter()
        .filter_map(|reused| reused.task_key.parse::<TaskKey>().ok());
    let reused = reused.filter_map(|key| key.partition().map(ToString::to_string));
    let planned = plan
        .tasks
        .iter()
        .map(|task| task.partition_key.clone())
        .filter(|key| !key.is_empty());
    let keys: BTreeSet<String> = planned.chain(reused).collect();
    if !spec.partitions.as_ref().is_some_and(changes)
        || !(1..=PARTITION_KEYS_PER_CALL_MAX).contains(&keys.len())
    {
        return spec;
    }
    let partitions = Some(Partitions::Keys(pb::PartitionKeys {
        keys: keys.into_iter().collect(),
    }));
    pb::RunSpec {
        partitions: Some(pb::PartitionSelection {
            partitions,
            only: 0,
        }),
        ..spec
    }
}

/// How the tasks of a run ended.
struct EndedTasks {
    /// The tasks whose output can be read, by ordinal, with the attempt that wrote it.
    succeeded: BTreeMap<u32, Option<AttemptId>>,
    /// How many mapped tasks each mapped parent had.
    mapped: HashMap<i32, i64>,
}

impl EndedTasks {
    /// A quarantined output counts only if its attempt is in `approved`.
    fn new(rows: &[StoredTask], approved: &HashSet<AttemptId>) -> EndedTasks {
        let is_readable = |task_row: &TaskRow| match task_row.resolution() {
            Some(EdgeResolution::Success) => true,
            Some(EdgeResolution::Withheld) => {
                task_row.attempt_id.is_some_and(|id| approved.contains(&id))
            }
            _ => false,
        };
        let mut ended = EndedTasks {
            succeeded: BTreeMap::new(),
            mapped: HashMap::new(),
        };
        for row in rows {
            match row.task_ref().map_index {
                Some(_) => *ended.mapped.entry(row.ordinal).or_default() += 1,
                None => {
                    let task_row = row.task_row().filter(is_readable);
                    ended.succeeded.extend(
                        task_row.map(|task_row| (row.task_ref().ordinal, task_row.attempt_id)),
                    );
                }
            }
        }
        ended
    }

    fn scope(
        &self,
        plan: &Plan,
        parent: &ExistingRun,
        scope: &RepeatedPart,
    ) -> Result<RetryScope, Error> {
        let RepeatedPart::From(names) = scope else {
            return Ok(RetryScope::Failed);
        };
        let mapped: Vec<(i32, i64)> = self
            .mapped
            .iter()
            .map(|(parent, count)| (*parent, *count))
            .collect();
        let ordinal = |name: &String| {
            let task_ref = tasks::task_ref_of(plan, &mapped, name);
            task_ref
                .map(|task_ref| task_ref.ordinal)
                .ok_or_else(|| errors::task_not_found(&parent.requested.run_id, name))
        };
        Ok(RetryScope::From(
            names
                .iter()
                .map(ordinal)
                .collect::<Result<BTreeSet<u32>, Error>>()?,
        ))
    }

    fn reused(&self, plan: &Plan, again: &BTreeSet<u32>) -> Vec<pb::ReusedOutput> {
        let kept = self
            .succeeded
            .iter()
            .filter(|(ordinal, _)| !again.contains(ordinal));
        let output = |(ordinal, attempt): (&u32, &Option<AttemptId>)| {
            let materialization_id = attempt.as_ref()?.to_string();
            let also_made = plan
                .settings(*ordinal)
                .also_makes
                .iter()
                .map(ToString::to_string)
                .collect();
            let task_key = plan.task(*ordinal).key.to_string();
            Some(pb::ReusedOutput {
                task_key,
                materialization_id,
                also_made,
            })
        };
        kept.filter_map(output).collect()
    }
}

#[cfg(test)]
mod tests {
    use servo_model::Timestamp;
    use servo_model::states::{TaskState, TransitionReason};

    use super::*;

    fn row(ordinal: i32, state: TaskState, reason: TransitionReason) -> StoredTask {
        StoredTask {
            run_number: 1,
            ordinal,
            item: -1,
            attempt: 1,
            failures: 0,
            state: state.code(),
            reason: reason.code(),
            cancelling: false,
            pushed: false,
            changed_at: Timestamp::UNIX_EPOCH,
            ready_at: None,
            claimed_at: None,
            started_at: None,
            ended_at: None,
            due_at: None,
            attempt_id: Some(Uuid::from_bytes([ordinal.to_be_bytes()[3]; 16])),
            worker_id: None,
            session: None,
            items: None,
        }
    }

    #[test]
    fn a_quarantined_output_is_reused_only_once_it_is_approved() {
        let rows = [
            row(
                0,
                TaskState::Succeeded,
                TransitionReason::ExecutionSucceeded,
            ),
            row(1, TaskState::Succeeded, TransitionReason::OutputWithheld),
            row(2, TaskState::Skipped, TransitionReason::UpstreamQuarantined),
        ];
        let kept = |approved: HashSet<AttemptId>| -> Vec<u32> {
            EndedTasks::new(&rows, &approved)
                .succeeded
                .into_keys()
                .collect()
        };
        assert_eq!(kept(HashSet::new()), [0]);
        assert_eq!(kept([AttemptId::from_bytes([1; 16])].into()), [0, 1]);
    }

    #[test]
    fn all_outputs_of_a_multi_asset_are_reused() {
        let asset = |key: &str, also_makes: &[&str]| pb::PlannedAsset {
            asset_key: key.to_owned(),
            also_makes: also_makes.iter().map(|key| (*key).to_owned()).collect(),
            ..Default::default()
        };
        let task = |asset: u32, key: &str| pb::PlannedTask {
            task_key: key.to_owned(),
            asset,
            upstream: (0..asset).collect(),
            ..Default::default()
        };
        let plan = pb::Plan {
            plan_id: "0".repeat(64),
            assets: vec![asset("n/a", &["n/b", "n/c"]), asset("n/d", &[])],
            tasks: vec![task(0, "n/a:materialize"), task(1, "n/d:materialize")],
            ..Default::default()
        };
        let rows = [
            row(
                0,
                TaskState::Succeeded,
                TransitionReason::ExecutionSucceeded,
            ),
            row(1, TaskState::Failed, TransitionReason::ExecutionFailed),
        ];
        let plan = crate::wire::plan(&plan).unwrap();
        let reused = EndedTasks::new(&rows, &HashSet::new()).reused(&plan, &[1].into());
        let [kept] = &reused[..] else {
            panic!("{reused:?}")
        };
        assert_eq!(
            (kept.task_key.as_str(), &kept.also_made[..]),
            ("n/a:materialize", &["n/b".to_owned(), "n/c".to_owned()][..])
        );
    }

    #[test]
    fn a_retry_names_the_partitions_of_the_first_plan() {
        let task = |key: &str| pb::PlannedTask {
            partition_key: key.to_owned(),
            ..Default::default()
        };
        let plan = pb::Plan {
            tasks: vec![task("day=d:2026-01-30"), task("day=d:2026-01-31"), task("")],
            reused: vec![pb::ReusedOutput {
                task_key: "n/a[day=d:2026-01-29]:materialize".to_owned(),
                ..Default::default()
            }],
            ..Default::default()
        };
        let spec = |partitions| pb::RunSpec {
            partitions: Some(pb::PartitionSelection {
                partitions: Some(partitions),
                only: 0,
            }),
            ..Default::default()
        };
        let keys = ["day=d:2026-01-29", "day=d:2026-01-30", "day=d:2026-01-31"]
            .map(str::to_owned)
            .to_vec();
        let named = spec(Partitions::Keys(pb::PartitionKeys { keys }));
        assert_eq!(as_planned(spec(Partitions::Latest(2)), &plan), named);
        assert_eq!(
            as_planned(spec(Partitions::All(true)), &plan),
            spec(Partitions::All(true))
        );
        assert_eq!(
            as_planned(spec(Partitions::Latest(2)), &pb::Plan::default()),
            spec(Partitions::Latest(2))
        );
    }
}
