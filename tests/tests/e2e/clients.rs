//! The workspace API of the Rust client on a real mesh, and its streams through a gateway that is
//! killed.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use servo_client::api::{self, LogLevel, RunState, TaskState, WaitReason};
use servo_client::worker::{Attempt, AttemptOutcome, Handler, Worker, WorkerConfig};
use servo_client::{Client, Error, ItemStream, Reason, Run, Workspace};
use servo_local::{TENANT, free_port};
use servo_model::Service;
use servo_tests::manifest::{asset, manifest};
use servo_tests::user::{User, WORKSPACE};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::support::Running;

const COMMIT: &str = r#"{"do":"commit"}"#;
const SLEEP: &str = r#"{"do":"sleep","ms":60000}"#;

fn workspace(user: &User) -> Workspace {
    user.client.workspace(user.tenant(), WORKSPACE)
}

/// raw -> clean -> mail, and an asset that sleeps.
fn shop(mail: &str) -> api::Manifest {
    manifest(vec![
        asset("shop/raw", &[], COMMIT),
        asset("shop/clean", &["shop/raw"], COMMIT),
        asset("shop/mail", &["shop/clean"], mail),
        asset("nap/a", &[], SLEEP),
    ])
}

async fn all<T>(stream: ItemStream<T>) -> Vec<T> {
    stream.try_collect().await.unwrap()
}

fn keys(assets: &[api::Asset]) -> Vec<&str> {
    assets
        .iter()
        .map(|asset| asset.asset_key.as_str())
        .collect()
}

#[tokio::test]
async fn a_workspace_deploys_runs_lists_retries_and_cancels() {
    let running = Running::shared().await;
    let user = running.user();
    let workspace = workspace(&user);
    let preview = workspace
        .deploy(shop(""))
        .with(|request| request.validate_only = true)
        .await
        .unwrap();
    assert_eq!(preview.diff.unwrap().changes.len(), 4);
    assert_eq!(
        workspace.deployment().await.unwrap_err().reason(),
        Some(Reason::DeploymentNotFound)
    );
    let deployed = workspace
        .deploy(shop(r#"{"do":"fail"}"#))
        .await
        .unwrap()
        .deployment
        .unwrap();
    assert_eq!(
        workspace.deployment().await.unwrap().deployment_id,
        deployed.deployment_id
    );

    let planned = workspace
        .plan(Run::of(["shop.*"]))
        .with(|request| request.max_tasks = 1)
        .await
        .unwrap();
    assert_eq!(
        (planned.task_count, planned.plan.unwrap().tasks.len()),
        (3, 1)
    );
    let request =
        Run::of(["shop.*"]).with(|spec| drop(spec.labels.insert("by".into(), "hand".into())));
    let nightly = || {
        workspace
            .trigger(request.clone())
            .with(|request| request.run_key = "nightly".into())
    };
    let run = nightly().await.unwrap().run_id;
    assert_eq!(
        nightly().await.unwrap().run_id,
        run,
        "the same key with the same request is the same run"
    );
    let explanations = all(workspace.explain(&run).stream()).await;
    assert_eq!(explanations.last().unwrap().reason(), WaitReason::Upstream);
    let alone = workspace
        .explain(&run)
        .with(|request| request.task_id.clone_from(&explanations[2].task_id));
    assert_eq!(all(alone.stream()).await.len(), 1);

    let _worker = user.start_worker(4);
    assert_eq!(
        workspace.wait(&run).await.unwrap().state(),
        RunState::Failed
    );
    let failed = workspace
        .runs()
        .with(|request| request.filter = "state = FAILED".into());
    assert_eq!(all(failed.stream()).await[0].run_id, run);
    let tasks = all(workspace.tasks(&run).stream()).await;
    let states: Vec<TaskState> = tasks.iter().map(api::Task::state).collect();
    assert_eq!(
        states,
        [
            TaskState::Succeeded,
            TaskState::Succeeded,
            TaskState::Failed
        ]
    );
    let failure = workspace.task(&run, &tasks[2].task_id).await.unwrap();
    assert_eq!(failure.attempts.len(), 1);
    let materializations = workspace
        .materializations()
        .with(|request| request.filter = format!("run_id = {run}"));
    assert_eq!(all(materializations.stream()).await.len(), 2);
    assert_eq!(all(workspace.workers().stream()).await.len(), 1);
    assert!(all(workspace.logs(&run).stream()).await.is_empty());

    workspace
        .deploy(shop(""))
        .with(|request| request.comment = "fixed".into())
        .await
        .unwrap();
    let fixed = workspace
        .retry(&run)
        .with(|request| request.use_current_deployment = true)
        .await
        .unwrap();
    assert_eq!(
        (fixed.retry_of.as_str(), fixed.tasks.unwrap().total),
        (run.as_str(), 1)
    );
    assert_eq!(
        workspace.wait(&fixed.run_id).await.unwrap().state(),
        RunState::Succeeded
    );
    let nap = workspace.trigger(Run::of(["nap/a"])).await.unwrap().run_id;
    workspace
        .cancel(&nap)
        .with(|request| request.comment = "by mistake".into())
        .await
        .unwrap();
    assert_eq!(
        workspace.wait(&nap).await.unwrap().state(),
        RunState::Cancelled
    );
    assert_eq!(
        workspace.run(&nap).await.unwrap().state(),
        RunState::Cancelled
    );
    assert_eq!(all(workspace.runs().stream()).await.len(), 3);
}

#[tokio::test]
async fn a_workspace_reads_the_graph_transfers_artifacts_and_returns_refusals() {
    let running = Running::shared().await;
    let user = running.user();
    let workspace = workspace(&user);
    let broken = manifest(vec![asset("shop/a", &["shop/ghost"], "")]);
    let refused = workspace.deploy(broken).await.unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::ManifestInvalid));
    let Error::Refused { violations, .. } = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(violations[0].field, "assets[0].dependencies[0].upstream");
    assert!(
        violations[0].description.contains("shop/ghost"),
        "{violations:?}"
    );

    // More faults than fit into a status.
    let broken = || {
        manifest(
            (0..300)
                .map(|n| asset(&format!("shop/a{n}"), &["shop/ghost"], ""))
                .collect(),
        )
    };
    for refused in [
        workspace.deploy(broken()).await,
        workspace
            .deploy(broken())
            .with(|request| request.validate_only = true)
            .await,
    ] {
        let Err(Error::Refused {
            violations,
            message,
            ..
        }) = refused
        else {
            panic!("{refused:?}")
        };
        assert!(message.contains("299 more faults"), "{message}");
        let fields: BTreeSet<String> = violations
            .into_iter()
            .map(|violation| violation.field)
            .collect();
        assert_eq!(
            fields,
            (0..300)
                .map(|n| format!("assets[{n}].dependencies[0].upstream"))
                .collect()
        );
    }

    workspace.deploy(shop("")).await.unwrap();
    assert_eq!(
        keys(&all(workspace.assets(&["1+shop/clean"]).stream()).await),
        ["shop/clean", "shop/raw"]
    );
    assert_eq!(all(workspace.assets(&[]).stream()).await.len(), 4);
    let filtered = workspace
        .assets(&[])
        .with(|request| request.filter = "namespace = nap".into());
    assert_eq!(keys(&all(filtered.stream()).await), ["nap/a"]);
    assert_eq!(
        workspace.asset("shop/clean").await.unwrap().upstream_keys,
        ["shop/raw"]
    );
    for absent in ["shop/ghost", "shop"] {
        assert_eq!(
            workspace.asset(absent).await.unwrap_err().reason(),
            Some(Reason::AssetNotFound)
        );
    }
    assert_eq!(
        workspace
            .lineage(&["+shop/clean"])
            .await
            .unwrap()
            .edges
            .len(),
        1
    );
    assert_eq!(workspace.lineage(&[]).await.unwrap().assets.len(), 4);

    let archive = vec![7; 600_000];
    let digest = workspace
        .upload(archive.clone(), api::ArtifactKind::SourceArchive)
        .await
        .unwrap();
    assert_eq!(workspace.download(&digest).await.unwrap(), archive);
    let other = workspace.in_workspace("other");
    assert_eq!(
        other.download(&digest).await.unwrap_err().reason(),
        Some(Reason::ArtifactNotFound)
    );
    // Too large to be sent inline, so the client uploads it as an artifact.
    let wordy = |n: usize| api::AssetDefinition {
        description: "x".repeat(1_000),
        ..asset(&format!("large/t{n:04}"), &[], "")
    };
    let large = manifest((0..1_200).map(wordy).collect());
    assert_eq!(
        other
            .deploy(large)
            .await
            .unwrap()
            .deployment
            .unwrap()
            .asset_count,
        1_200
    );
    assert_eq!(
        all(other.assets(&[]).stream()).await.len(),
        1_200,
        "all pages"
    );
    assert_eq!(all(workspace.assets(&[]).stream()).await.len(), 4);

    // A server that never existed is an error; the client does not wait for it.
    let absent_server = user
        .client
        .at(&format!("https://localhost:{}", free_port().unwrap()))
        .unwrap();
    let absent = format!("run_{}", "a".repeat(26));
    let unreachable = absent_server
        .workspace(user.tenant(), WORKSPACE)
        .wait(&absent)
        .await
        .unwrap_err();
    assert!(
        matches!(unreachable, Error::Unreachable(_)),
        "{unreachable:?}"
    );
    // A server that accepts connections and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_server = user
        .client
        .at(&format!("https://{}", silent.local_addr().unwrap()))
        .unwrap();
    let mut request = tonic::Request::new(api::GetRunRequest::default());
    request.set_timeout(Duration::from_millis(100));
    let late = silent_server
        .scheduler()
        .get_run(request)
        .await
        .unwrap_err();
    assert_eq!(late.code(), tonic::Code::DeadlineExceeded, "{late:?}");
}

/// Writes a log line, waits until the test releases it, and writes another.
struct Talking {
    client: Client,
    released: watch::Receiver<bool>,
}

impl Talking {
    async fn log(&self, attempt: &Attempt, sequence: u64, word: &str) {
        let envelope = attempt.envelope();
        let text = format!("{} {word}", envelope.asset_key);
        let line = api::LogLine {
            text,
            level: LogLevel::Info.into(),
            ..Default::default()
        };
        let mut request = tonic::Request::new(api::AppendLogsRequest {
            tenant: envelope.tenant.clone(),
            workspace: envelope.workspace.clone(),
            run_id: envelope.run_id.clone(),
            attempt_id: envelope.attempt_id.clone(),
            session: attempt.session().to_owned(),
            sequence,
            lines: vec![line],
            ..Default::default()
        });
        let presigned = envelope.callbacks.clone().unwrap().logs.parse().unwrap();
        request.metadata_mut().insert("servo-presigned", presigned);
        self.client.callback().append_logs(request).await.unwrap();
    }
}

impl Handler for Talking {
    async fn run(&self, attempt: Attempt) -> AttemptOutcome {
        self.log(&attempt, 1, "begins").await;
        self.released
            .clone()
            .wait_for(|released| *released)
            .await
            .unwrap();
        self.log(&attempt, 2, "ends").await;
        AttemptOutcome::succeeded()
    }
}

fn start_talking(user: &User, released: watch::Receiver<bool>) {
    let handlers = vec!["noop".to_owned()];
    let info = api::WorkerInfo {
        name: "talking".into(),
        slots: 2,
        handlers,
        ..Default::default()
    };
    let config = WorkerConfig::new(user.tenant(), info);
    let talking = Talking {
        client: user.client.clone(),
        released,
    };
    tokio::spawn(Worker::new(user.client.clone(), user.client.clone(), config, talking).run());
}

#[tokio::test]
async fn logs_and_watches_continue_after_their_gateway_was_killed() {
    let mut running = Running::start_with(|options| options.instances(Service::Gateway, 2)).await;
    let [user, worker] = [0, 1].map(|gateway| User::at(&running.mesh, gateway, TENANT).unwrap());
    let (release, released) = watch::channel(false);
    start_talking(&worker, released);
    let workspace = workspace(&user);
    workspace
        .deploy(manifest(vec![
            asset("talk/a", &[], ""),
            asset("talk/b", &["talk/a"], ""),
        ]))
        .await
        .unwrap();
    let run = workspace.trigger(Run::of(["talk.*"])).await.unwrap().run_id;
    let mut lines = workspace
        .logs(&run)
        .with(|request| request.follow = true)
        .stream();
    assert_eq!(lines.next().await.unwrap().unwrap().text, "talk/a begins");
    let mut changes = workspace
        .watch(&run)
        .with(|request| request.include_events = true)
        .stream();
    let first = changes.next().await.unwrap().unwrap();
    assert_eq!(first.run.unwrap().state(), RunState::Running);
    let waiting = tokio::spawn(workspace.wait(&run).into_future());

    running.mesh.kill_9(Service::Gateway).unwrap();
    release.send(true).unwrap();
    assert_eq!(
        worker.wait_for_end(&run).await.unwrap().state(),
        RunState::Succeeded
    );
    running.mesh.launch(Service::Gateway).unwrap();
    running.mesh.wait_until_healthy().await.unwrap();

    let rest: Vec<String> = all(lines).await.into_iter().map(|line| line.text).collect();
    assert_eq!(
        rest,
        ["talk/a ends", "talk/b begins", "talk/b ends"],
        "each line once"
    );
    let changes = all(changes).await;
    assert_eq!(
        changes.last().unwrap().run.as_ref().unwrap().state(),
        RunState::Succeeded
    );
    let events: Vec<&str> = changes
        .iter()
        .flat_map(|change| &change.events)
        .map(|event| event.event_id.as_str())
        .collect();
    assert_eq!(
        events.iter().collect::<BTreeSet<_>>().len(),
        events.len(),
        "each event once"
    );
    assert_eq!(waiting.await.unwrap().unwrap().state(), RunState::Succeeded);

    let last = workspace.logs(&run).with(|request| request.last_lines = 1);
    assert_eq!(all(last.stream()).await[0].text, "talk/b ends");
    let loud = workspace
        .logs(&run)
        .with(|request| request.set_min_level(LogLevel::Error));
    assert!(all(loud.stream()).await.is_empty());
    let refused = workspace
        .logs("nonsense")
        .stream()
        .next()
        .await
        .unwrap()
        .unwrap_err();
    let Error::Refused { violations, .. } = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!(violations[0].field, "run_id");
    running.mesh.stop().await.unwrap();
}
