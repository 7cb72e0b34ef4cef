//! F17: a cancel reaches tasks in every state, also while a component is down.

use servo_client::api::{self, RunState, TaskState};
use servo_local::wait::{LIMIT, Wait, until_true};
use servo_local::{Child, LivenessTimings};
use servo_model::Service;
use servo_tests::load::is_retryable;
use servo_tests::manifest::{asset, manifest, with_short_timeouts};
use servo_tests::user::{User, WORKSPACE};
use servo_tests::worker_process::WorkerProcess;
use servo_tests::{full, invariants};
use tokio::net::TcpListener;

use crate::support::{Running, binaries};

/// The handler of the push worker only.
const PUSHED: &str = "pushed";
/// A pool without slots.
const CLOSED: &str = "closed";

/// The component that is down while the run is cancelled.
#[derive(Debug, Clone, Copy)]
enum Down {
    Nothing,
    Service(Service),
    Worker,
}

const ALL: [Down; 6] = [
    Down::Nothing,
    Down::Service(Service::Dispatcher),
    Down::Worker,
    Down::Service(Service::Callback),
    Down::Service(Service::Scheduler),
    Down::Service(Service::Gateway),
];

/// One task in every state that a cancel can find.
fn every_state() -> api::Manifest {
    let retry = api::RetryPolicy {
        max_attempts: 5,
        backoff: api::Backoff::Constant.into(),
        initial_delay: Some(prost_types::Duration {
            seconds: 600,
            nanos: 0,
        }),
        ..Default::default()
    };
    let fails = asset("c/retry", &[], r#"{"do":"fail","category":"TRANSIENT"}"#);
    let pushed = api::Handler {
        name: PUSHED.to_owned(),
        config_json: String::new(),
    };
    let code = api::CodeRef {
        target: Some(api::code_ref::Target::Handler(pushed)),
        ..Default::default()
    };
    manifest(vec![
        with_short_timeouts(asset("c/running", &[], r#"{"do":"sleep","ms":600000}"#)),
        with_short_timeouts(asset("c/hung", &[], r#"{"do":"freeze"}"#)),
        asset("c/blocked", &["c/running"], ""),
        api::AssetDefinition {
            retry: Some(retry),
            ..fails
        },
        api::AssetDefinition {
            pool: CLOSED.to_owned(),
            ..asset("c/ready", &[], "")
        },
        api::AssetDefinition {
            code: Some(code),
            ..with_short_timeouts(asset("c/pushed", &[], ""))
        },
    ])
}

/// Registers a push worker that accepts connections and never responds, so that tasks stay in the
/// queue.
async fn silent_push_worker(user: &User) -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/push", listener.local_addr().unwrap());
    let (mut register, _) = user.push_worker(&url, 4);
    register.info.as_mut().unwrap().handlers = vec![PUSHED.to_owned()];
    user.client
        .dispatcher()
        .register_worker(register)
        .await
        .unwrap();
    listener
}

fn state_of(tasks: &[api::Task], name: &str) -> TaskState {
    tasks
        .iter()
        .find(|task| task.asset_key == format!("c/{name}"))
        .unwrap()
        .state()
}

async fn wait_for_every_state(user: &User, run: &str) {
    let wanted = [
        ("hung", TaskState::Running),
        ("running", TaskState::Running),
        ("blocked", TaskState::Blocked),
        ("retry", TaskState::RetryWait),
        ("ready", TaskState::Ready),
        ("pushed", TaskState::Dispatched),
    ];
    until_true("a task in every state", async || {
        let tasks = user.tasks(run).await.unwrap();
        wanted
            .iter()
            .all(|(name, state)| state_of(&tasks, name) == *state)
    })
    .await;
}

/// Calls CancelRun until it is accepted.
async fn cancel_when_reachable(user: &User, run: &str) {
    let request = api::CancelRunRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: run.to_owned(),
        ..Default::default()
    };
    let mut wait = Wait::within(LIMIT, "CancelRun to be accepted");
    while let Err(status) = user.client.scheduler().cancel_run(request.clone()).await {
        // An earlier call was accepted, and its response was lost.
        if status.code() == tonic::Code::FailedPrecondition {
            return;
        }
        assert!(is_retryable(&status), "{status:?}");
        wait.pause().await;
    }
}

#[tokio::test]
async fn chaos_f17_a_cancel_reaches_tasks_in_every_state_with_any_component_down() {
    let mut running = Running::start_with(|options| options.timings(LivenessTimings::FAST)).await;
    let user = User::of(&running.mesh).unwrap();
    user.create_pool(CLOSED, 0).await.unwrap();
    user.deploy(every_state()).await.unwrap();
    let _listener = silent_push_worker(&user).await;
    let worker = WorkerProcess::default();
    let start = |running: &Running| -> Child { worker.start(&running.mesh, &binaries()).unwrap() };
    let mut worker_process = start(&running);
    for down in &ALL[..if full() { ALL.len() } else { 3 }] {
        let run = user.trigger(&["c.*"]).await.unwrap().run_id;
        wait_for_every_state(&user, &run).await;
        match down {
            Down::Nothing => {}
            Down::Service(service) => running.mesh.kill_9(*service).unwrap(),
            Down::Worker => drop(worker_process.kill_group().unwrap()),
        }
        match down {
            // The call cannot be accepted before the service is back.
            Down::Service(service @ (Service::Scheduler | Service::Gateway)) => {
                let cancelling = tokio::spawn({
                    let (user, run) = (user.clone(), run.clone());
                    async move { cancel_when_reachable(&user, &run).await }
                });
                running.mesh.launch(*service).unwrap();
                cancelling.await.unwrap();
            }
            _ => cancel_when_reachable(&user, &run).await,
        }
        // An accepted cancel is folded, so tasks without an attempt are cancelled.
        let tasks = user.tasks(&run).await.unwrap();
        for name in ["blocked", "retry", "ready"] {
            assert_eq!(
                state_of(&tasks, name),
                TaskState::Cancelled,
                "{name} with {down:?}"
            );
        }
        match down {
            Down::Service(service) if !matches!(service, Service::Scheduler | Service::Gateway) => {
                running.mesh.launch(*service).unwrap();
            }
            Down::Worker => worker_process = start(&running),
            _ => {}
        }
        running.mesh.wait_until_healthy().await.unwrap();
        let ended = user.wait_for_end(&run).await.unwrap();
        assert_eq!(ended.state(), RunState::Cancelled, "{down:?}: {ended:?}");
        let tasks = user.tasks(&run).await.unwrap();
        assert!(
            tasks
                .iter()
                .all(|task| task.state() == TaskState::Cancelled),
            "{down:?}: {tasks:?}"
        );
    }
    drop(worker_process);
    invariants::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().await.unwrap();
}
