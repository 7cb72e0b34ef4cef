//! Partitions, checks and quarantine, as a user sees them through the gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use servo_client::api;
use servo_client::api::PartitionState::{self, InProgress, Missing, Quarantined, Stale, UpToDate};
use servo_client::worker::{Attempt, AttemptOutcome, Handler, Worker, WorkerConfig, WorkerHandle};
use servo_tests::invariants;
use servo_tests::manifest::{all_partitions, partitioned_fan_out};
use servo_tests::user::{User, WORKSPACE};
use tokio::sync::Semaphore;
use tonic::{Code, Status};

use crate::data::commit;
use crate::support::Running;

/// Writes an output for every task and reports a check result.
#[derive(Debug, Clone)]
pub(crate) struct Checking {
    /// Whether the check of `fan/root` fails.
    pub(crate) check_fails: Arc<AtomicBool>,
    /// Each attempt takes a permit before it continues.
    pub(crate) permits: Arc<Semaphore>,
}

impl Handler for Checking {
    async fn run(&self, attempt: Attempt) -> AttemptOutcome {
        self.permits.acquire().await.unwrap().forget();
        let envelope = attempt.envelope().clone();
        let fails = self.check_fails.load(Ordering::SeqCst) && envelope.asset_key == "fan/root";
        let check = api::CheckResult {
            name: "rows".to_owned(),
            passed: !fails,
            severity: api::Severity::Critical.into(),
            message: "counted".to_owned(),
            ..Default::default()
        };
        let output = commit(&envelope);
        let gating = if fails {
            api::Gating::Quarantine
        } else {
            api::Gating::Allow
        };
        AttemptOutcome::succeeded().with_report(|report| {
            report.outputs = vec![output];
            report.checks = vec![check];
            report.gating = gating.into();
        })
    }
}

pub(crate) fn start_worker(user: &User, handler: Checking) -> WorkerHandle {
    let info = api::WorkerInfo {
        name: "checking".to_owned(),
        slots: 8,
        handlers: vec!["noop".to_owned()],
        ..Default::default()
    };
    let config = WorkerConfig::new(user.tenant(), info);
    let worker = Worker::new(user.client.clone(), user.client.clone(), config, handler);
    let handle = worker.handle();
    tokio::spawn(async move { worker.run().await.unwrap() });
    handle
}

/// A root that may be quarantined, three partitions that depend on it, and a join of them.
pub(crate) fn quarantining(code_version: &str) -> api::Manifest {
    let mut manifest = partitioned_fan_out(3);
    manifest.code_version = code_version.to_owned();
    manifest
        .assets
        .iter_mut()
        .for_each(|asset| asset.quarantine = true);
    manifest
}

pub(crate) async fn run_successfully(user: &User, selection: &[&str]) -> String {
    // The root has no partitions.
    let run = match selection {
        ["fan/root"] => user.trigger(selection).await,
        _ => user.trigger_spec(all_partitions(selection)).await,
    };
    let run = run.unwrap().run_id;
    let ended = user.wait_for_end(&run).await.unwrap();
    assert_eq!(ended.state(), api::RunState::Succeeded, "{ended:?}");
    run
}

pub(crate) async fn partitions(
    user: &User,
    name: &str,
    filter: &str,
    page_token: &str,
) -> Result<api::ListPartitionsResponse, Status> {
    let request = api::ListPartitionsRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        namespace: "fan".to_owned(),
        name: name.to_owned(),
        page_size: 2,
        page_token: page_token.to_owned(),
        filter: filter.to_owned(),
        ..Default::default()
    };
    Ok(user
        .client
        .scheduler()
        .list_partitions(request)
        .await?
        .into_inner())
}

/// The states of the partitions on all pages.
async fn states(user: &User, name: &str, filter: &str) -> Vec<PartitionState> {
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let page = partitions(user, name, filter, &token).await.unwrap();
        found.extend(page.partitions.iter().map(api::Partition::state));
        token = page.next_page_token;
        if token.is_empty() {
            return found;
        }
    }
}

async fn summary(user: &User, name: &str) -> Result<api::GetPartitionSummaryResponse, Status> {
    let request = api::GetPartitionSummaryRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        namespace: "fan".to_owned(),
        name: name.to_owned(),
        ..Default::default()
    };
    Ok(user
        .client
        .scheduler()
        .get_partition_summary(request)
        .await?
        .into_inner())
}

/// The stretches of the summary as last letters of the first and last key, and the state. Asserts
/// that the counts match the total.
async fn stretches(user: &User, name: &str) -> Vec<(String, String, PartitionState)> {
    let found = summary(user, name).await.unwrap();
    let counted: u64 = found.counts.iter().map(|count| count.count).sum();
    assert_eq!(counted, found.total);
    let last = |key: &str| key.chars().last().map(String::from).unwrap_or_default();
    let show = |stretch: &api::PartitionStretch| {
        (
            last(&stretch.first_key),
            last(&stretch.last_key),
            stretch.counts[0].state(),
        )
    };
    found.stretches.iter().map(show).collect()
}

async fn stale(
    user: &User,
    selection: &[&str],
    reason: api::StaleReason,
    page_token: &str,
) -> Result<api::ListStalePartitionsResponse, Status> {
    let request = api::ListStalePartitionsRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        selection: selection.iter().map(ToString::to_string).collect(),
        page_size: 2,
        page_token: page_token.to_owned(),
        reason: reason.into(),
    };
    Ok(user
        .client
        .scheduler()
        .list_stale_partitions(request)
        .await?
        .into_inner())
}

async fn checks(user: &User, filter: &str) -> Result<Vec<api::CheckRecord>, Status> {
    let request = api::ListCheckResultsRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        filter: filter.to_owned(),
        ..Default::default()
    };
    Ok(user
        .client
        .scheduler()
        .list_check_results(request)
        .await?
        .into_inner()
        .results)
}

pub(crate) async fn decide(
    user: &User,
    id: &str,
    decision: api::QuarantineDecision,
    expected_version: u64,
) -> Result<api::ResolveQuarantineResponse, Status> {
    let request = api::ResolveQuarantineRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        materialization_id: id.to_owned(),
        decision: decision.into(),
        expected_version,
        comment: "inspected".to_owned(),
        ..Default::default()
    };
    Ok(user
        .client
        .scheduler()
        .resolve_quarantine(request)
        .await?
        .into_inner())
}

fn code<T: std::fmt::Debug>(result: Result<T, Status>) -> Code {
    result.unwrap_err().code()
}

#[tokio::test]
async fn partition_states_follow_attempts_upstream_changes_and_decisions() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let permits = Arc::new(Semaphore::new(1_000));
    let worker = Checking {
        check_fails: Arc::default(),
        permits,
    };
    let _working = start_worker(&user, worker.clone());
    assert_eq!(
        code(summary(&user, "part").await),
        Code::NotFound,
        "nothing is deployed"
    );
    user.deploy(quarantining("v1")).await.unwrap();

    missing_then_current(&user, &worker).await;
    stale_by_upstream_and_by_code(&user).await;
    quarantined_approved_and_rejected(&user, &worker).await;
    invalid_requests(&user).await;
    let violations = invariants::violations(running.mesh.admin_url())
        .await
        .unwrap();
    assert!(violations.is_empty(), "{violations:?}");
    running.mesh.stop().await.unwrap();
}

async fn missing_then_current(user: &User, worker: &Checking) {
    assert_eq!(states(user, "part", "").await, [Missing; 3]);
    assert_eq!(states(user, "root", "").await, [Missing]);
    assert_eq!(
        stretches(user, "part").await,
        [("0".to_owned(), "2".to_owned(), Missing)]
    );

    // Without permits the attempt stays in flight.
    let all = u32::try_from(worker.permits.available_permits()).unwrap();
    worker.permits.try_acquire_many(all).unwrap().forget();
    let only_root = api::RunSpec {
        selection: vec!["fan/root".to_owned()],
        ..Default::default()
    };
    let run = user.trigger_spec(only_root).await.unwrap().run_id;
    user.wait_for_tasks(&run, "the attempt to begin", |tasks| tasks.active == 1)
        .await
        .unwrap();
    assert_eq!(states(user, "root", "").await, [InProgress]);
    assert_eq!(
        stretches(user, "root").await,
        [(String::new(), String::new(), InProgress)]
    );
    worker.permits.add_permits(1_000);
    user.wait_for_end(&run).await.unwrap();
    assert_eq!(states(user, "root", "").await, [UpToDate]);

    let keys = api::PartitionKeys {
        keys: vec!["part=s:p00001".to_owned()],
    };
    let one = api::RunSpec {
        selection: vec!["fan/part".to_owned()],
        partitions: Some(api::PartitionSelection {
            partitions: Some(api::partition_selection::Partitions::Keys(keys)),
            only: 0,
        }),
        ..Default::default()
    };
    let run = user.trigger_spec(one).await.unwrap().run_id;
    user.wait_for_end(&run).await.unwrap();
    assert_eq!(states(user, "part", "").await, [Missing, UpToDate, Missing]);
    assert_eq!(states(user, "part", "state != MISSING").await, [UpToDate]);
    let part = |first: &str, state| (first.to_owned(), first.to_owned(), state);
    assert_eq!(
        stretches(user, "part").await,
        [part("0", Missing), part("1", UpToDate), part("2", Missing)]
    );
    let known = partitions(user, "part", "partition_key = part=s:p00001", "")
        .await
        .unwrap()
        .partitions;
    assert_eq!(
        (known.len(), known[0].materialize_run_id.as_str()),
        (1, run.as_str())
    );
    assert_eq!(known[0].last_attempt_outcome(), api::Outcome::Succeeded);
}

async fn stale_by_upstream_and_by_code(user: &User) {
    let any = api::StaleReason::Unspecified;
    assert_eq!(stale(user, &[], any, "").await.unwrap().total, 0);
    run_successfully(user, &["fan.*"]).await;
    assert_eq!(states(user, "part", "").await, [UpToDate; 3]);

    // The root is newer than the partitions now; the join depends only on the partitions.
    run_successfully(user, &["fan/root"]).await;
    assert_eq!(states(user, "part", "").await, [Stale; 3]);
    assert_eq!(
        stretches(user, "part").await,
        [("0".to_owned(), "2".to_owned(), Stale)]
    );
    let first = stale(user, &[], any, "").await.unwrap();
    assert_eq!((first.total, first.partitions.len()), (3, 2));
    let cause = &first.partitions[0].stale_causes[0];
    assert_eq!(
        (cause.reason(), cause.asset_key.as_str()),
        (api::StaleReason::UpstreamChanged, "fan/root")
    );
    assert!(first.partitions[0].stale_since.is_some());
    let second = stale(user, &[], any, &first.next_page_token).await.unwrap();
    let keys: Vec<&str> = first
        .partitions
        .iter()
        .chain(&second.partitions)
        .map(|one| one.partition_key.as_str())
        .collect();
    assert_eq!(keys, ["part=s:p00000", "part=s:p00001", "part=s:p00002"]);
    assert!(second.next_page_token.is_empty());
    assert_eq!(stale(user, &["fan/join"], any, "").await.unwrap().total, 0);

    run_successfully(user, &["fan/part"]).await;
    user.deploy(quarantining("v2")).await.unwrap();
    let by_code = stale(user, &["fan/root"], api::StaleReason::CodeChanged, "")
        .await
        .unwrap();
    assert_eq!((by_code.total, by_code.partitions[0].state()), (1, Stale));
    assert_eq!(
        stale(user, &["fan/root"], api::StaleReason::UpstreamChanged, "")
            .await
            .unwrap()
            .total,
        0
    );
    run_successfully(user, &["fan.*"]).await;
    assert_eq!(stale(user, &[], any, "").await.unwrap().total, 0);
}

async fn quarantined_approved_and_rejected(user: &User, worker: &Checking) {
    use api::QuarantineDecision::{Approve, Reject};
    let good = partitions(user, "root", "", "").await.unwrap().partitions[0]
        .materialization_id
        .clone();
    worker.check_fails.store(true, Ordering::SeqCst);
    let run = run_successfully(user, &["fan/root"]).await;
    let quarantined = partitions(user, "root", "", "")
        .await
        .unwrap()
        .partitions
        .remove(0);
    assert_eq!(
        (quarantined.state(), &quarantined.materialization_id),
        (Quarantined, &good)
    );
    assert_eq!(
        stretches(user, "root").await,
        [(String::new(), String::new(), Quarantined)]
    );

    let failed = checks(user, "passed = false").await.unwrap();
    let [failed] = &failed[..] else {
        panic!("one check failed, not {failed:?}")
    };
    assert_eq!(
        (&failed.run_id, &failed.materialization_id),
        (&run, &quarantined.last_attempt_id)
    );
    assert_eq!(
        (
            failed.asset_key.as_str(),
            failed.result.as_ref().unwrap().name.as_str()
        ),
        ("fan/root", "rows")
    );
    assert_eq!(
        checks(user, &format!("run_id = {run}")).await.unwrap(),
        std::slice::from_ref(failed)
    );
    assert!(
        checks(user, "asset_key = fan.part AND passed = true")
            .await
            .unwrap()
            .len()
            >= 3
    );

    let id = &quarantined.last_attempt_id;
    assert_eq!(code(decide(user, id, Approve, 7).await), Code::Aborted);
    assert_eq!(
        code(decide(user, &good, Approve, 0).await),
        Code::FailedPrecondition
    );
    let approved = decide(user, id, Approve, 1).await.unwrap();
    let version = approved.materialization.clone().unwrap();
    assert_eq!(
        (version.state(), version.version),
        (api::MaterializationState::Promoted, 2)
    );
    assert_eq!(version.resolved_by.unwrap().comment, "inspected");
    assert_eq!(
        decide(user, id, Approve, 1).await.unwrap(),
        approved,
        "a repeat changes nothing"
    );
    assert_eq!(
        code(decide(user, id, Reject, 0).await),
        Code::FailedPrecondition
    );
    let root = partitions(user, "root", "", "")
        .await
        .unwrap()
        .partitions
        .remove(0);
    assert_eq!((root.state(), &root.materialization_id), (UpToDate, id));
    assert_eq!(
        states(user, "part", "").await,
        [Stale; 3],
        "the approved version is newer than the partitions"
    );

    run_successfully(user, &["fan/root"]).await;
    let rejected = partitions(user, "root", "", "").await.unwrap().partitions[0]
        .last_attempt_id
        .clone();
    let answer = decide(user, &rejected, Reject, 0)
        .await
        .unwrap()
        .materialization
        .unwrap();
    assert_eq!(answer.state(), api::MaterializationState::Rejected);
    let root = partitions(user, "root", "", "")
        .await
        .unwrap()
        .partitions
        .remove(0);
    assert_eq!(
        (root.state(), &root.materialization_id),
        (UpToDate, id),
        "a rejected version is never read"
    );
}

async fn invalid_requests(user: &User) {
    for (name, filter, token, expected) in [
        ("nobody", "", "", Code::NotFound),
        ("No Name", "", "", Code::NotFound),
        ("part", "owner = me", "", Code::InvalidArgument),
        ("part", "partition_key = day", "", Code::InvalidArgument),
        ("part", "", "x", Code::InvalidArgument),
    ] {
        let refused = partitions(user, name, filter, token).await.unwrap_err();
        assert_eq!(
            refused.code(),
            expected,
            "{name} {filter} {token}: {refused}"
        );
    }
    assert_eq!(code(summary(user, "nobody").await), Code::NotFound);
    assert_eq!(
        code(stale(user, &["nobody/here"], api::StaleReason::Unspecified, "").await),
        Code::NotFound
    );
    assert_eq!(
        code(stale(user, &[], api::StaleReason::Unspecified, "x").await),
        Code::InvalidArgument
    );
    assert_eq!(
        code(checks(user, "owner = me").await),
        Code::InvalidArgument
    );
    let approve = api::QuarantineDecision::Approve;
    assert_eq!(
        code(decide(user, "no id", approve, 0).await),
        Code::NotFound
    );
    let nothing = api::QuarantineDecision::Unspecified;
    assert_eq!(
        code(decide(user, "no id", nothing, 0).await),
        Code::InvalidArgument
    );
}
