//! F17: a cancel lands in whatever state it finds a task, also while a component is down.

use std::time::Duration;

use servo_client::api::{self, RunState, TaskState};
use servo_local::{Child, LivenessPace};
use servo_model::Service;
use servo_tests::load::may_repeat;
use servo_tests::manifest::{asset, impatient, manifest};
use servo_tests::user::{User, WORKSPACE};
use servo_tests::worker_process::WorkerProcess;
use servo_tests::{aftermath, full};
use tokio::net::TcpListener;

use crate::support::{Running, binaries};

/// What the listener alone can run, and nothing else.
const LISTENS: &str = "listens";
const CLOSED: &str = "closed";

/// Who is down while the cancel is asked for.
#[derive(Debug, Clone, Copy)]
enum Down {
    Nobody,
    Service(Service),
    Worker,
}

const ALL: [Down; 6] = [
    Down::Nobody,
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
    let listens = api::Handler {
        name: LISTENS.to_owned(),
        config_json: String::new(),
    };
    let code = api::CodeRef {
        target: Some(api::code_ref::Target::Handler(listens)),
        ..Default::default()
    };
    manifest(vec![
        impatient(asset("c/running", &[], r#"{"do":"sleep","ms":600000}"#)),
        impatient(asset("c/hung", &[], r#"{"do":"freeze"}"#)),
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
            ..impatient(asset("c/pushed", &[], ""))
        },
    ])
}

/// Takes connections and never answers: what is pushed to it stays in the queue.
async fn deaf_listener(user: &User) -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/push", listener.local_addr().unwrap());
    let (mut register, _) = user.push_worker(&url, 4);
    register.info.as_mut().unwrap().handlers = vec![LISTENS.to_owned()];
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

async fn until_every_state(user: &User, run: &str) {
    let wanted = [
        ("hung", TaskState::Running),
        ("running", TaskState::Running),
        ("blocked", TaskState::Blocked),
        ("retry", TaskState::RetryWait),
        ("ready", TaskState::Ready),
        ("pushed", TaskState::Dispatched),
    ];
    loop {
        let tasks = user.tasks(run).await.unwrap();
        if wanted
            .iter()
            .all(|(name, state)| state_of(&tasks, name) == *state)
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Asks until somebody takes it.
async fn cancel_patiently(user: &User, run: &str) {
    let asked = api::CancelRunRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: run.to_owned(),
        ..Default::default()
    };
    while let Err(status) = user.client.scheduler().cancel_run(asked.clone()).await {
        // Taken, and its answer lost with who gave it.
        if status.code() == tonic::Code::FailedPrecondition {
            return;
        }
        assert!(may_repeat(&status), "{status:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn chaos_f17_a_cancel_lands_in_every_state_whoever_is_down() {
    let mut running = Running::start_with(|options| options.pace(LivenessPace::QUICK)).await;
    let user = User::of(&running.mesh).unwrap();
    user.create_pool(CLOSED, 0).await.unwrap();
    user.deploy(every_state()).await.unwrap();
    let _listener = deaf_listener(&user).await;
    let worker = WorkerProcess::default();
    let start = |running: &Running| -> Child { worker.start(&running.mesh, &binaries()).unwrap() };
    let mut at_work = start(&running);
    for down in &ALL[..if full() { ALL.len() } else { 3 }] {
        let run = user.trigger(&["c.*"]).await.unwrap().run_id;
        until_every_state(&user, &run).await;
        match down {
            Down::Nobody => {}
            Down::Service(service) => running.mesh.kill_9(*service).unwrap(),
            Down::Worker => drop(at_work.kill_group().unwrap()),
        }
        match down {
            // Nobody could take it; it is asked for until they are back.
            Down::Service(service @ (Service::Scheduler | Service::Gateway)) => {
                let asking = tokio::spawn({
                    let (user, run) = (user.clone(), run.clone());
                    async move { cancel_patiently(&user, &run).await }
                });
                running.mesh.launch(*service).unwrap();
                asking.await.unwrap();
            }
            _ => cancel_patiently(&user, &run).await,
        }
        // Accepted is folded: who has no attempt is cancelled by then.
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
            Down::Worker => at_work = start(&running),
            _ => {}
        }
        running.mesh.wait_until_healthy().await.unwrap();
        let ended = user.ended(&run).await.unwrap();
        assert_eq!(ended.state(), RunState::Cancelled, "{down:?}: {ended:?}");
        let tasks = user.tasks(&run).await.unwrap();
        assert!(
            tasks
                .iter()
                .all(|task| task.state() == TaskState::Cancelled),
            "{down:?}: {tasks:?}"
        );
    }
    drop(at_work);
    aftermath::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().unwrap();
}
