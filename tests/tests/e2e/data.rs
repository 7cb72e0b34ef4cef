//! Versions of data: the inputs in envelopes, and the list of materializations.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use servo_client::api;
use servo_client::worker::{Attempt, AttemptOutcome, Handler, Worker, WorkerConfig, WorkerHandle};
use servo_model::Digest;
use servo_tests::manifest::{all_partitions, asset, manifest, partitioned_fan_out};
use servo_tests::user::{User, WORKSPACE};
use servo_tests::worker::Behaviour;

use crate::support::Running;

/// The envelope of an attempt and its resolved inputs.
#[derive(Debug, Clone)]
struct Received {
    envelope: api::TaskEnvelope,
    inputs: Vec<api::ResolvedInput>,
}

/// Writes the outputs of every task that is not configured to fail, and keeps what it received.
#[derive(Debug, Clone, Default)]
struct Committing(Arc<Mutex<Vec<Received>>>);

impl Committing {
    /// The newest attempt of a task.
    fn last(&self, task_key: &str) -> Received {
        let received = self.0.lock().unwrap();
        received
            .iter()
            .rev()
            .find(|received| received.envelope.task_key == task_key)
            .unwrap()
            .clone()
    }
}

impl Handler for Committing {
    async fn run(&self, attempt: Attempt) -> AttemptOutcome {
        let envelope = attempt.envelope().clone();
        let inputs = match attempt.inputs().await {
            Ok(inputs) => inputs,
            Err(error) => {
                let category = api::ErrorCategory::Input.into();
                let message = error.to_string();
                return AttemptOutcome::failed(api::TaskError {
                    category,
                    message,
                    ..Default::default()
                });
            }
        };
        self.0.lock().unwrap().push(Received {
            envelope: envelope.clone(),
            inputs,
        });
        if matches!(Behaviour::of(&envelope), Behaviour::Fail { .. }) {
            return AttemptOutcome::failed(api::TaskError::default());
        }
        let output = commit(&envelope);
        let output_of = |asset_key: &String| api::Output {
            asset_key: asset_key.clone(),
            ..output.clone()
        };
        let outputs = envelope.output_asset_keys.iter().map(output_of).collect();
        AttemptOutcome::succeeded().with_report(|report| report.outputs = outputs)
    }
}

/// Writes the commit marker into the folder of the attempt and returns the output.
pub(crate) fn commit(envelope: &api::TaskEnvelope) -> api::Output {
    let folder = Path::new(envelope.output_uri.strip_prefix("file://").unwrap());
    std::fs::create_dir_all(folder).unwrap();
    let (run, attempt) = (&envelope.run_id, &envelope.attempt_id);
    let marker = format!(r#"{{"run_id":"{run}","materialization_id":"{attempt}"}}"#);
    let mut file = std::fs::File::create_new(folder.join("_commit.json")).unwrap();
    file.write_all(marker.as_bytes()).unwrap();
    api::Output {
        asset_key: envelope.asset_key.clone(),
        partition_key: envelope.partition_key.clone(),
        uri: envelope.output_uri.clone(),
        commit_digest: Digest::of(&marker).to_string(),
        code_version: envelope.code_version.clone(),
        ..Default::default()
    }
}

fn start_worker(user: &User, handler: Committing) -> WorkerHandle {
    let info = api::WorkerInfo {
        name: "committing".to_owned(),
        slots: 32,
        handlers: vec!["noop".to_owned()],
        ..Default::default()
    };
    let config = WorkerConfig::new(user.tenant(), info);
    let worker = Worker::new(user.client.clone(), user.client.clone(), config, handler);
    let handle = worker.handle();
    tokio::spawn(async move { worker.run().await.unwrap() });
    handle
}

/// A root, its partitions, and a join that reads all of them.
fn reading_fan_out(width: usize) -> api::Manifest {
    let mut manifest = partitioned_fan_out(width);
    for asset in &mut manifest.assets {
        asset
            .dependencies
            .iter_mut()
            .for_each(|dependency| dependency.parameter = "input".to_owned());
    }
    manifest
}

async fn run_successfully(user: &User, spec: api::RunSpec) {
    let run = user.trigger_spec(spec).await.unwrap().run_id;
    let ended = user.wait_for_end(&run).await.unwrap();
    assert_eq!(ended.state(), api::RunState::Succeeded, "{ended:?}");
}

fn one_partition(key: &str) -> api::RunSpec {
    let keys = api::PartitionKeys {
        keys: vec![key.to_owned()],
    };
    let partitions = api::partition_selection::Partitions::Keys(keys);
    api::RunSpec {
        selection: vec!["fan/part".to_owned()],
        partitions: Some(api::PartitionSelection {
            partitions: Some(partitions),
            only: 0,
        }),
        ..Default::default()
    }
}

/// The versions that a reader of these partitions must receive.
fn versions(worker: &Committing, partitions: &[&str]) -> Vec<api::ResolvedVersion> {
    let version = |partition: &&str| {
        let written = worker
            .last(&format!("fan/part[{partition}]:materialize"))
            .envelope;
        api::ResolvedVersion {
            partition_key: (*partition).to_owned(),
            materialization_id: written.attempt_id,
            uri: written.output_uri,
        }
    };
    partitions.iter().map(version).collect()
}

#[tokio::test]
async fn envelopes_name_the_newest_versions_at_the_time_of_dispatch() {
    const BOTH: [&str; 2] = ["part=s:p00000", "part=s:p00001"];
    let running = Running::shared().await;
    let user = running.user();
    let worker = Committing::default();
    let _working = start_worker(&user, worker.clone());
    user.deploy(reading_fan_out(2)).await.unwrap();
    run_successfully(&user, all_partitions(&["fan.*"])).await;
    let root = worker.last("fan/root:materialize");
    assert!(root.inputs.is_empty(), "{:?}", root.inputs);
    let part = worker.last("fan/part[part=s:p00001]:materialize");
    assert_eq!(
        part.inputs[0].versions[0].materialization_id,
        root.envelope.attempt_id
    );
    let join = worker.last("fan/join:materialize").inputs;
    assert_eq!(
        (join[0].asset_key.as_str(), join[0].parameter.as_str()),
        ("fan/part", "input")
    );
    assert_eq!(join[0].versions, versions(&worker, &BOTH));

    // After a second run of one partition, the next reader gets its newer version.
    run_successfully(&user, one_partition(BOTH[0])).await;
    let only_join = api::RunSpec {
        selection: vec!["fan/join".to_owned()],
        ..Default::default()
    };
    run_successfully(&user, only_join).await;
    let again = worker.last("fan/join:materialize").inputs;
    assert_eq!(again[0].versions, versions(&worker, &BOTH));
    assert_ne!(again[0].versions[0], join[0].versions[0]);
    assert_eq!(again[0].versions[1], join[0].versions[1]);
}

/// One task writes sales and refunds; the report reads the refunds and fails.
fn till() -> api::Manifest {
    let refunds = api::AssetDefinition {
        code: None,
        made_by: "till/sales".to_owned(),
        ..asset("till/refunds", &[], "")
    };
    let mut report = asset("till/report", &["till/refunds"], r#"{"do":"fail"}"#);
    report.dependencies[0].parameter = "refunds".to_owned();
    manifest(vec![asset("till/sales", &[], ""), refunds, report])
}

#[tokio::test]
async fn a_retry_reads_all_outputs_of_the_original_run_instead_of_newer_ones() {
    let running = Running::shared().await;
    let user = running.user();
    let worker = Committing::default();
    let _working = start_worker(&user, worker.clone());
    user.deploy(till()).await.unwrap();
    let mut failed = user.trigger(&["till.*"]).await.unwrap();
    user.wait_for_end(&failed.run_id).await.unwrap();
    let first = worker.last("till/sales:materialize").envelope.attempt_id;
    let sales = api::RunSpec {
        selection: vec!["till/sales".to_owned()],
        ..Default::default()
    };
    run_successfully(&user, sales).await;
    assert_ne!(
        worker.last("till/sales:materialize").envelope.attempt_id,
        first
    );
    // A retry of a retry reads the outputs of the first run too.
    for _ in 0..2 {
        failed = user
            .client
            .workspace(user.tenant(), WORKSPACE)
            .retry(&failed.run_id)
            .await
            .unwrap();
        user.wait_for_end(&failed.run_id).await.unwrap();
        let report = worker.last("till/report:materialize");
        assert_eq!(report.envelope.run_id, failed.run_id);
        let read = &report.inputs[0].versions[0];
        assert_eq!(
            (
                report.inputs[0].asset_key.as_str(),
                &read.materialization_id
            ),
            ("till/refunds", &first)
        );
    }
}

#[tokio::test]
async fn inputs_that_do_not_fit_into_an_envelope_are_stored_under_a_uri() {
    const WIDTH: usize = 600;
    let running = Running::shared().await;
    let user = running.user();
    let worker = Committing::default();
    let _working = start_worker(&user, worker.clone());
    user.deploy(reading_fan_out(WIDTH)).await.unwrap();
    run_successfully(&user, all_partitions(&["fan.*"])).await;
    let join = worker.last("fan/join:materialize");
    assert!(join.envelope.inputs.is_empty() && !join.envelope.inputs_uri.is_empty());
    let names: Vec<String> = (0..WIDTH).map(|n| format!("part=s:p{n:05}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(join.inputs[0].versions, versions(&worker, &names));
}

async fn listed(
    user: &User,
    filter: &str,
    page_size: i32,
    page_token: &str,
) -> Result<api::ListMaterializationsResponse, tonic::Status> {
    let request = api::ListMaterializationsRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        page_size,
        page_token: page_token.to_owned(),
        filter: filter.to_owned(),
        ..Default::default()
    };
    Ok(user
        .client
        .scheduler()
        .list_materializations(request)
        .await?
        .into_inner())
}

/// The ids on all pages.
async fn all_listed(user: &User, filter: &str, page_size: i32) -> Vec<String> {
    let (mut ids, mut token) = (Vec::new(), String::new());
    loop {
        let page = listed(user, filter, page_size, &token).await.unwrap();
        ids.extend(
            page.materializations
                .into_iter()
                .map(|version| version.materialization_id),
        );
        token = page.next_page_token;
        if token.is_empty() {
            return ids;
        }
    }
}

#[tokio::test]
async fn versions_are_listed_newest_first() {
    let running = Running::shared().await;
    let user = running.user();
    let worker = Committing::default();
    let _working = start_worker(&user, worker.clone());
    user.deploy(reading_fan_out(3)).await.unwrap();
    let first = user
        .trigger_spec(all_partitions(&["fan.*"]))
        .await
        .unwrap()
        .run_id;
    user.wait_for_end(&first).await.unwrap();
    run_successfully(&user, one_partition("part=s:p00001")).await;

    let newest = listed(&user, "", 1, "")
        .await
        .unwrap()
        .materializations
        .remove(0);
    let written = worker.last("fan/part[part=s:p00001]:materialize").envelope;
    assert_eq!(
        (&newest.materialization_id, &newest.task_id),
        (&written.attempt_id, &written.task_id)
    );
    assert_eq!((&newest.run_id, newest.version), (&written.run_id, 1));
    assert_eq!(newest.state(), api::MaterializationState::Promoted);
    assert_eq!(newest.gating(), api::Gating::Allow);
    assert_eq!(newest.output.unwrap().uri, written.output_uri);

    let all = all_listed(&user, "", 100).await;
    assert_eq!(all.len(), 6, "five of the first run, one of the second");
    for page_size in [1, 2, 5] {
        assert_eq!(
            all_listed(&user, "", page_size).await,
            all,
            "pages of {page_size}"
        );
    }
    for (filter, count) in [
        (format!("run_id = {first}"), 5),
        ("asset_key = fan/part".to_owned(), 4),
        (
            "asset_key = fan.part AND partition_key = part=s:p00001".to_owned(),
            2,
        ),
        (
            format!("asset_key = fan/part AND run_id = {first} AND state = PROMOTED"),
            3,
        ),
        ("state = QUARANTINED".to_owned(), 0),
        ("gating != ALLOW".to_owned(), 0),
        ("record_time > 2020-01-01T00:00:00Z".to_owned(), 6),
    ] {
        assert_eq!(all_listed(&user, &filter, 2).await.len(), count, "{filter}");
    }
    for wrong in [
        "owner = me",
        "state = GOOD",
        "run_id = 7",
        "record_time > soon",
    ] {
        let refused = listed(&user, wrong, 0, "").await.unwrap_err();
        assert_eq!(
            refused.code(),
            tonic::Code::InvalidArgument,
            "{wrong}: {refused}"
        );
    }
    assert_eq!(
        listed(&user, "", 0, "x").await.unwrap_err().code(),
        tonic::Code::InvalidArgument
    );
}
