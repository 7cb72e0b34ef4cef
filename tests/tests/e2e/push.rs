//! Tasks that are pushed: through the queue, over HTTP, to a worker that asks before it starts.

use servo_client::api::{DispatchMode, QueueEntryState, RunState, TaskState};
use servo_client::worker::WorkerHandle;
use servo_model::Service;
use servo_tests::manifest::{asset, manifest};
use servo_tests::user::User;
use tokio::net::TcpListener;

use crate::support::Running;

/// A port that listens, and its address.
async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/push", listener.local_addr().unwrap());
    (listener, url)
}

async fn listen(user: &User, slots: u32) -> WorkerHandle {
    let (listener, url) = listener().await;
    let (_, worker) = user.push_worker(&url, slots);
    let handle = worker.handle();
    tokio::spawn(worker.run(listener));
    handle
}

#[tokio::test]
async fn a_pushed_task_is_queued_dispatched_started_and_finished() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    user.deploy(manifest(vec![asset("push/a", &[], "")])).await.unwrap();
    // The port takes connections, and nobody answers on them before the worker runs.
    let (listener, url) = listener().await;
    let (register, worker) = user.push_worker(&url, 4);
    user.client.dispatcher().register_worker(register).await.unwrap();
    let run = user.trigger(&["push.*"]).await.unwrap();
    let task = loop {
        let tasks = user.tasks(&run.run_id).await.unwrap();
        if tasks[0].state() == TaskState::Dispatched {
            break tasks[0].clone();
        }
    };
    let dispatches = user.dispatches().await.unwrap();
    assert_eq!(dispatches.len(), 1);
    let dispatch = &dispatches[0];
    assert_eq!((dispatch.mode(), dispatch.state()), (DispatchMode::Push, QueueEntryState::Created));
    assert_eq!((dispatch.queue.as_str(), dispatch.task_id.as_str()), ("dispatch-0", task.task_id.as_str()));
    tokio::spawn(worker.run(listener));
    let ended = user.ended(&run.run_id).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");
    let told = user.task(&run.run_id, &task.task_id).await.unwrap();
    let path: Vec<TaskState> = told.history.iter().map(|change| change.to_state()).collect();
    let expected = [TaskState::Queued, TaskState::Dispatched, TaskState::Running, TaskState::Succeeded];
    assert!(path.ends_with(&expected), "{path:?}");
    assert_eq!(told.attempts.len(), 1);
}

#[tokio::test]
async fn f11_pushed_tasks_survive_kill_9_of_the_dispatcher() {
    let mut running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = listen(&user, 4).await;
    let nap = r#"{"do":"sleep","ms":100}"#;
    let keys: Vec<String> = (0..30).map(|n| format!("push/t{n}")).collect();
    user.deploy(manifest(keys.iter().map(|key| asset(key, &[], nap)).collect())).await.unwrap();
    let run = user.trigger(&["push.*"]).await.unwrap();
    user.until(&run.run_id, |tasks| tasks.succeeded >= 5).await.unwrap();
    running.mesh.process(Service::Dispatcher).unwrap().kill_group().unwrap();
    running.mesh.launch(Service::Dispatcher).unwrap();
    let ended = user.ended(&run.run_id).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");
    let tasks = user.tasks(&run.run_id).await.unwrap();
    assert!(tasks.iter().all(|task| task.failures == 0), "{tasks:?}");
}

#[tokio::test]
async fn a_place_that_no_operator_allowed_is_not_pushed_to() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    for url in ["http://169.254.169.254/latest", "http://127.0.0.1.evil.example/", "gopher://127.0.0.1/", "x"]
    {
        let (register, _) = user.push_worker(url, 1);
        let refused = user.client.dispatcher().register_worker(register).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{url}");
        assert!(refused.message().contains("info.push_url"), "{}", refused.message());
    }
}
