//! Versions of data: what tasks are told to read, and what is known of them.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use servo_client::api;
use servo_client::worker::{Attempt, Done, Handler, Worker, WorkerConfig, WorkerHandle};
use servo_model::Digest;
use servo_tests::manifest::{asset, everything, manifest, partitioned_fan_out};
use servo_tests::user::{User, WORKSPACE};
use servo_tests::worker::Behaviour;

use crate::support::Running;

/// What an attempt was told.
#[derive(Debug, Clone)]
struct Told {
    envelope: api::TaskEnvelope,
    inputs: Vec<api::ResolvedInput>,
}

/// Writes the outputs of every task that is not asked to fail, and remembers what it was told.
#[derive(Debug, Clone, Default)]
struct Committing(Arc<Mutex<Vec<Told>>>);

impl Committing {
    /// The newest attempt at a task.
    fn last(&self, task_key: &str) -> Told {
        let told = self.0.lock().unwrap();
        told.iter()
            .rev()
            .find(|told| told.envelope.task_key == task_key)
            .unwrap()
            .clone()
    }
}

impl Handler for Committing {
    async fn run(&self, attempt: Attempt) -> Done {
        let envelope = attempt.envelope().clone();
        let inputs = match attempt.inputs().await {
            Ok(inputs) => inputs,
            Err(error) => {
                let category = api::ErrorCategory::Input.into();
                let message = error.to_string();
                return Done::failed(api::TaskError {
                    category,
                    message,
                    ..Default::default()
                });
            }
        };
        self.0.lock().unwrap().push(Told {
            envelope: envelope.clone(),
            inputs,
        });
        if matches!(Behaviour::of(&envelope), Behaviour::Fail { .. }) {
            return Done::failed(api::TaskError::default());
        }
        let output = commit(&envelope);
        let made = |asset_key: &String| api::Output {
            asset_key: asset_key.clone(),
            ..output.clone()
        };
        let outputs = envelope.output_asset_keys.iter().map(made).collect();
        Done::succeeded().reporting(|report| report.outputs = outputs)
    }
}

/// Writes the commit marker into the attempt's folder.
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

fn work(user: &User, handler: Committing) -> WorkerHandle {
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
            .for_each(|dependency| dependency.parameter = "before".to_owned());
    }
    manifest
}

async fn succeeded(user: &User, spec: api::RunSpec) {
    let run = user.trigger_spec(spec).await.unwrap().run_id;
    let ended = user.ended(&run).await.unwrap();
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

/// What somebody who reads these partitions must be told.
fn versions(worker: &Committing, partitions: &[&str]) -> Vec<api::ResolvedVersion> {
    let version = |partition: &&str| {
        let made = worker
            .last(&format!("fan/part[{partition}]:materialize"))
            .envelope;
        api::ResolvedVersion {
            partition_key: (*partition).to_owned(),
            materialization_id: made.attempt_id,
            uri: made.output_uri,
        }
    };
    partitions.iter().map(version).collect()
}

#[tokio::test]
async fn envelopes_name_the_versions_that_stand_when_a_task_is_dispatched() {
    const BOTH: [&str; 2] = ["part=s:p00000", "part=s:p00001"];
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let worker = Committing::default();
    let _working = work(&user, worker.clone());
    user.deploy(reading_fan_out(2)).await.unwrap();
    succeeded(&user, everything(&["fan.*"])).await;
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
        ("fan/part", "before")
    );
    assert_eq!(join[0].versions, versions(&worker, &BOTH));

    // Made again in a run of its own: the next reader gets the newer one, and the other as it was.
    succeeded(&user, one_partition(BOTH[0])).await;
    let only_join = api::RunSpec {
        selection: vec!["fan/join".to_owned()],
        ..Default::default()
    };
    succeeded(&user, only_join).await;
    let again = worker.last("fan/join:materialize").inputs;
    assert_eq!(again[0].versions, versions(&worker, &BOTH));
    assert_ne!(again[0].versions[0], join[0].versions[0]);
    assert_eq!(again[0].versions[1], join[0].versions[1]);
    running.mesh.stop().unwrap();
}

/// One task makes sales and refunds; the report reads the latter, and fails.
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
async fn a_retry_reads_every_output_of_the_run_it_repeats_whatever_was_made_since() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let worker = Committing::default();
    let _working = work(&user, worker.clone());
    user.deploy(till()).await.unwrap();
    let mut failed = user.trigger(&["till.*"]).await.unwrap();
    user.ended(&failed.run_id).await.unwrap();
    let first = worker.last("till/sales:materialize").envelope.attempt_id;
    let sales = api::RunSpec {
        selection: vec!["till/sales".to_owned()],
        ..Default::default()
    };
    succeeded(&user, sales).await;
    assert_ne!(
        worker.last("till/sales:materialize").envelope.attempt_id,
        first
    );
    // A retry of a retry takes over what the first one did.
    for _ in 0..2 {
        failed = user
            .client
            .workspace(user.tenant(), WORKSPACE)
            .retry(&failed.run_id)
            .await
            .unwrap();
        user.ended(&failed.run_id).await.unwrap();
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
    running.mesh.stop().unwrap();
}

#[tokio::test]
async fn more_inputs_than_an_envelope_holds_are_referred_to() {
    const WIDTH: usize = 600;
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let worker = Committing::default();
    let _working = work(&user, worker.clone());
    user.deploy(reading_fan_out(WIDTH)).await.unwrap();
    succeeded(&user, everything(&["fan.*"])).await;
    let join = worker.last("fan/join:materialize");
    assert!(join.envelope.inputs.is_empty() && !join.envelope.inputs_uri.is_empty());
    let names: Vec<String> = (0..WIDTH).map(|n| format!("part=s:p{n:05}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(join.inputs[0].versions, versions(&worker, &names));
    running.mesh.stop().unwrap();
}

async fn listed(
    user: &User,
    filter: &str,
    page_size: i32,
    page_token: &str,
) -> Result<api::ListMaterializationsResponse, tonic::Status> {
    let asked = api::ListMaterializationsRequest {
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
        .list_materializations(asked)
        .await?
        .into_inner())
}

/// All pages, by id.
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
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let worker = Committing::default();
    let _working = work(&user, worker.clone());
    user.deploy(reading_fan_out(3)).await.unwrap();
    let first = user
        .trigger_spec(everything(&["fan.*"]))
        .await
        .unwrap()
        .run_id;
    user.ended(&first).await.unwrap();
    succeeded(&user, one_partition("part=s:p00001")).await;

    let newest = listed(&user, "", 1, "")
        .await
        .unwrap()
        .materializations
        .remove(0);
    let made = worker.last("fan/part[part=s:p00001]:materialize").envelope;
    assert_eq!(
        (&newest.materialization_id, &newest.task_id),
        (&made.attempt_id, &made.task_id)
    );
    assert_eq!((&newest.run_id, newest.version), (&made.run_id, 1));
    assert_eq!(newest.state(), api::MaterializationState::Promoted);
    assert_eq!(newest.gating(), api::Gating::Allow);
    assert_eq!(newest.output.unwrap().uri, made.output_uri);

    let everything = all_listed(&user, "", 100).await;
    assert_eq!(
        everything.len(),
        6,
        "five of the first run, one of the second"
    );
    for page_size in [1, 2, 5] {
        assert_eq!(
            all_listed(&user, "", page_size).await,
            everything,
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
    running.mesh.stop().unwrap();
}
