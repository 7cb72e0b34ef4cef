//! RetryRun: the next generation of a run that has ended, with what is to be repeated of it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use servo_mesh::{Caller, Error, Reason};
use servo_model::edges::EdgeResolution;
use servo_model::limits::PARTITION_KEYS_PER_CALL_MAX;
use servo_model::states::{Machine, MaterializationState};
use servo_model::{AttemptId, TaskKey};
use servo_proto::v1;
use servo_proto::v1::partition_selection::Partitions;
use servo_store::{LoopStore, query};
use uuid::Uuid;

use super::start::{Call, Start, Started, start};
use super::{Scheduler, answer, generations, get_run, tasks};
use crate::core::{Cell, Graph, RetryScope, repeated};
use crate::known::Wanted;
use crate::shards::Plans;
use crate::store::{KnownRun, StoredTask, tasks_of};

const RACES_MAX: usize = 5;

/// Which part of a run is repeated, by what the caller names.
pub(super) enum Scope {
    Failed,
    From(Vec<String>),
    All,
}

pub(super) async fn retry_run(
    scheduler: &Scheduler,
    caller: &Caller,
    asked: v1::RetryRunRequest,
) -> Result<v1::RetryRunResponse, Error> {
    if asked.request_id.is_empty() {
        let told = "request_id is empty; choose one, so that a repeated call is no second run";
        return Err(Error::new(Reason::RequestIdRequired, told));
    }
    let scope = scope(&asked)?;
    let call = call(caller, &asked)?;
    for _ in 0..RACES_MAX {
        let found = scheduler.known.find(wanted(&call, &asked.run_id)?).await?;
        if let Some(run) = found.by_request {
            call.check_repeat(&run.asked)?;
            let stored = get_run::find(
                scheduler,
                &asked.tenant,
                &asked.workspace,
                &run.asked.run_id,
            )
            .await?;
            let accepted_event_id = crate::wire::ulid(run.event_id);
            return Ok(v1::RetryRunResponse {
                run: Some(stored),
                accepted_event_id,
            });
        }
        let parent = found
            .by_id
            .ok_or_else(|| answer::run_not_found(&asked.run_id))?;
        let next = repeat(
            scheduler,
            &call,
            parent,
            &scope,
            asked.use_current_deployment,
        )
        .await?;
        if let Started::Run { run, event_id } = start(scheduler, &call, next).await? {
            return Ok(v1::RetryRunResponse {
                run: Some(*run),
                accepted_event_id: event_id,
            });
        }
    }
    Err(Error::new(
        Reason::VersionConflict,
        "others keep repeating this run; read it and try again",
    ))
}

fn call(caller: &Caller, asked: &v1::RetryRunRequest) -> Result<Call, Error> {
    let (scope, current) = (
        asked.scope.to_string(),
        asked.use_current_deployment.to_string(),
    );
    let tasks = asked.task_ids.join(",");
    let said = ["RetryRun", &asked.run_id, &scope, &tasks, &current];
    Call::new(
        caller,
        (&asked.tenant, &asked.workspace),
        &asked.request_id,
        &asked.comment,
        &said,
    )
}

fn scope(asked: &v1::RetryRunRequest) -> Result<Scope, Error> {
    let unknown = |_| {
        Error::bad_field(
            "scope",
            format!("{} is no scope; leave it out for FAILED", asked.scope),
        )
    };
    let scope = v1::RetryScope::try_from(asked.scope).map_err(unknown)?;
    match (scope, asked.task_ids.is_empty()) {
        (v1::RetryScope::FromTasks, true) => Err(Error::bad_field(
            "task_ids",
            "is empty; name the tasks to repeat, or take another scope",
        )),
        (v1::RetryScope::FromTasks, false) => Ok(Scope::From(asked.task_ids.clone())),
        (_, false) => Err(Error::bad_field(
            "task_ids",
            "is only for scope FROM_TASKS; leave it empty",
        )),
        (v1::RetryScope::Unspecified | v1::RetryScope::Failed, true) => Ok(Scope::Failed),
        (v1::RetryScope::All, true) => Ok(Scope::All),
    }
}

fn wanted(call: &Call, run_id: &str) -> Result<Wanted, Error> {
    Ok(Wanted {
        tenant: call.tenant.to_string(),
        workspace: call.workspace.to_string(),
        run_id: answer::run_id(run_id)?,
        request_id: Some(call.request_id.clone()),
    })
}

async fn repeat(
    scheduler: &Scheduler,
    call: &Call,
    parent: KnownRun,
    scope: &Scope,
    use_current_deployment: bool,
) -> Result<Start, Error> {
    check_ended(&parent)?;
    let spec = parent.asked.spec.clone().unwrap_or_default();
    let deployment_id = if use_current_deployment {
        String::new()
    } else {
        parent.deployment_id.clone()
    };
    let planned = v1::RunSpec {
        deployment_id,
        ..spec.clone()
    };
    let order = order(scheduler, call, &parent, scope, planned).await?;
    let fingerprint = crate::wire::fingerprint(&parent.asked)
        .map_err(|error| Error::new(Reason::Internal, error.to_string()))?;
    let retry_of = parent.run_id.to_string();
    let newest = generations::newest(scheduler, call, parent).await?;
    check_ended(&newest)?;
    Ok(Start {
        key: generations::next(&newest)?,
        fingerprint,
        spec,
        order,
        retry_of,
    })
}

fn check_ended(run: &KnownRun) -> Result<(), Error> {
    if run.state.is_terminal() {
        return Ok(());
    }
    let (run_id, state) = (run.run_id, run.state);
    let message = format!(
        "run {run_id} is {state}; only what has ended is repeated: wait, or cancel it first"
    );
    Err(Error::new(Reason::InvalidState, message)
        .with("state", state.name())
        .with("run_id", run_id.to_string()))
}

/// What to plan for a repeat of `parent`: the tasks that run again, and the outputs that stand for the others.
pub(super) async fn order(
    scheduler: &Scheduler,
    call: &Call,
    parent: &KnownRun,
    scope: &Scope,
    spec: v1::RunSpec,
) -> Result<v1::PlanOrder, Error> {
    let whole = v1::PlanOrder {
        spec: Some(spec.clone()),
        ..Default::default()
    };
    let Some(plan_id) = parent.plan_id.filter(|_| !matches!(scope, Scope::All)) else {
        return match scope {
            Scope::From(names) => Err(answer::task_not_found(
                &parent.asked.run_id,
                &names.join(", "),
            )),
            Scope::Failed | Scope::All => Ok(whole),
        };
    };
    let loops = scheduler.store.loops();
    let plan = Plans::read(
        loops,
        call.tenant.as_str(),
        call.workspace.as_str(),
        &plan_id,
    )
    .await;
    let gone = || Error::new(Reason::PlanNotFound, "the run's plan is no longer stored");
    let plan = plan.map_err(answer::store)?.ok_or_else(gone)?;
    let graph = scheduler
        .plans
        .learn(&plan)
        .map_err(|error| Error::new(Reason::Internal, error.to_string()))?;
    let rows = tasks_of(loops, &[parent.run_number])
        .await
        .map_err(answer::store)?;
    let ended = Ended::new(&rows, &approved(loops, &rows).await?);
    let again = repeated(
        &graph,
        |ordinal| ended.succeeded.contains_key(&ordinal),
        &ended.scope(&graph, parent, scope)?,
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
        .map(|ordinal| graph.task(*ordinal).key.to_string())
        .collect();
    let spec = Some(as_planned(spec, &plan));
    let reused = plan
        .reused
        .into_iter()
        .chain(ended.reused(&graph, &again))
        .collect();
    Ok(v1::PlanOrder {
        spec,
        only_task_keys,
        reused,
        ..whole
    })
}

/// The attempts whose outputs were withheld and that somebody approved since.
async fn approved(loops: &LoopStore, rows: &[StoredTask]) -> Result<HashSet<AttemptId>, Error> {
    let cells = rows.iter().filter_map(StoredTask::cell);
    let withheld = cells.filter(|cell| cell.resolution() == Some(EdgeResolution::Withheld));
    let attempts = withheld.filter_map(|cell| cell.attempt_id);
    let attempts: Vec<Uuid> = attempts
        .map(|id| Uuid::from_bytes(*id.as_bytes()))
        .collect();
    if attempts.is_empty() {
        return Ok(HashSet::new());
    }
    let select = query(include_str!("../store/resolvable.sql")).bind(attempts);
    let rows: Vec<(Uuid, i16, i64)> = loops.all(select).await.map_err(answer::store)?;
    let promoted = rows
        .into_iter()
        .filter(|(_, state, _)| *state == MaterializationState::Promoted.code());
    Ok(promoted
        .map(|(attempt, ..)| AttemptId::from_bytes(attempt.into_bytes()))
        .collect())
}

/// The partitions that the first plan had, by name: which are the newest, or in some condition, changes with time.
fn as_planned(spec: v1::RunSpec, plan: &v1::Plan) -> v1::RunSpec {
    let changes = |selection: &v1::PartitionSelection| {
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
    let partitions = Some(Partitions::Keys(v1::PartitionKeys {
        keys: keys.into_iter().collect(),
    }));
    v1::RunSpec {
        partitions: Some(v1::PartitionSelection {
            partitions,
            only: 0,
        }),
        ..spec
    }
}

/// How a run's tasks ended.
struct Ended {
    /// What left something to read, by ordinal, with the attempt; a task whose children did the work has none.
    succeeded: BTreeMap<u32, Option<AttemptId>>,
    /// How many children each mapped task had.
    children: HashMap<i32, i64>,
}

impl Ended {
    /// What was withheld counts once it is among `approved`.
    fn new(rows: &[StoredTask], approved: &HashSet<AttemptId>) -> Ended {
        let is_readable = |cell: &Cell| match cell.resolution() {
            Some(EdgeResolution::Success) => true,
            Some(EdgeResolution::Withheld) => {
                cell.attempt_id.is_some_and(|id| approved.contains(&id))
            }
            _ => false,
        };
        let mut ended = Ended {
            succeeded: BTreeMap::new(),
            children: HashMap::new(),
        };
        for row in rows {
            match row.slot().item {
                Some(_) => *ended.children.entry(row.ordinal).or_default() += 1,
                None => {
                    let cell = row.cell().filter(is_readable);
                    ended
                        .succeeded
                        .extend(cell.map(|cell| (row.slot().ordinal, cell.attempt_id)));
                }
            }
        }
        ended
    }

    fn scope(&self, graph: &Graph, parent: &KnownRun, scope: &Scope) -> Result<RetryScope, Error> {
        let Scope::From(names) = scope else {
            return Ok(RetryScope::Failed);
        };
        let children: Vec<(i32, i64)> = self
            .children
            .iter()
            .map(|(parent, count)| (*parent, *count))
            .collect();
        let ordinal = |name: &String| {
            let slot = tasks::slot_of(graph, &children, name);
            slot.map(|slot| slot.ordinal)
                .ok_or_else(|| answer::task_not_found(&parent.asked.run_id, name))
        };
        Ok(RetryScope::From(
            names
                .iter()
                .map(ordinal)
                .collect::<Result<BTreeSet<u32>, Error>>()?,
        ))
    }

    fn reused(&self, graph: &Graph, again: &BTreeSet<u32>) -> Vec<v1::ReusedOutput> {
        let kept = self
            .succeeded
            .iter()
            .filter(|(ordinal, _)| !again.contains(ordinal));
        let output = |(ordinal, attempt): (&u32, &Option<AttemptId>)| {
            let materialization_id = attempt.as_ref()?.to_string();
            let also_made = graph
                .settings(*ordinal)
                .also_makes
                .iter()
                .map(ToString::to_string)
                .collect();
            let task_key = graph.task(*ordinal).key.to_string();
            Some(v1::ReusedOutput {
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
    use servo_model::states::{TaskState, TransitionReason};
    use servo_store::Timestamp;

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
            changed_at: Timestamp::from_unix_us(0),
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
    fn a_withheld_output_stands_for_its_task_only_once_it_is_approved() {
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
            Ended::new(&rows, &approved).succeeded.into_keys().collect()
        };
        assert_eq!(kept(HashSet::new()), [0]);
        assert_eq!(kept([AttemptId::from_bytes([1; 16])].into()), [0, 1]);
    }

    #[test]
    fn everything_that_a_kept_task_made_is_taken_over() {
        let asset = |key: &str, also_makes: &[&str]| v1::PlannedAsset {
            asset_key: key.to_owned(),
            also_makes: also_makes.iter().map(|key| (*key).to_owned()).collect(),
            ..Default::default()
        };
        let task = |asset: u32, key: &str| v1::PlannedTask {
            task_key: key.to_owned(),
            asset,
            upstream: (0..asset).collect(),
            ..Default::default()
        };
        let plan = v1::Plan {
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
        let graph = crate::wire::graph(&plan).unwrap();
        let reused = Ended::new(&rows, &HashSet::new()).reused(&graph, &[1].into());
        let [kept] = &reused[..] else {
            panic!("{reused:?}")
        };
        assert_eq!(
            (kept.task_key.as_str(), &kept.also_made[..]),
            ("n/a:materialize", &["n/b".to_owned(), "n/c".to_owned()][..])
        );
    }

    #[test]
    fn a_retry_names_the_partitions_that_the_first_plan_had() {
        let task = |key: &str| v1::PlannedTask {
            partition_key: key.to_owned(),
            ..Default::default()
        };
        let plan = v1::Plan {
            tasks: vec![task("day=d:2026-01-30"), task("day=d:2026-01-31"), task("")],
            reused: vec![v1::ReusedOutput {
                task_key: "n/a[day=d:2026-01-29]:materialize".to_owned(),
                ..Default::default()
            }],
            ..Default::default()
        };
        let spec = |partitions| v1::RunSpec {
            partitions: Some(v1::PartitionSelection {
                partitions: Some(partitions),
                only: 0,
            }),
            ..Default::default()
        };
        let keys = ["day=d:2026-01-29", "day=d:2026-01-30", "day=d:2026-01-31"]
            .map(str::to_owned)
            .to_vec();
        let named = spec(Partitions::Keys(v1::PartitionKeys { keys }));
        assert_eq!(as_planned(spec(Partitions::Latest(2)), &plan), named);
        assert_eq!(
            as_planned(spec(Partitions::All(true)), &plan),
            spec(Partitions::All(true))
        );
        assert_eq!(
            as_planned(spec(Partitions::Latest(2)), &v1::Plan::default()),
            spec(Partitions::Latest(2))
        );
    }
}
