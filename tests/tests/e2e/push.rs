//! Pushed tasks: through the queue, over HTTP, to a worker that requests permission to start.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prost::Message;
use servo_client::api::{
    Acceptance, DispatchMode, QueueEntryState, RunState, SignedEnvelope, StartAttemptRequest,
    TaskEnvelope, TaskState,
};
use servo_client::worker::WorkerHandle;
use servo_local::LivenessTimings;
use servo_local::wait::{until, until_true};
use servo_model::Service;
use servo_tests::manifest::{asset, manifest, with_short_timeouts};
use servo_tests::user::User;
use servo_tests::worker::Journal;
use servo_tests::{full, invariants, journal};
use sqlx::{Connection, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Running, binaries};

/// A listening port and its URL.
async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/push", listener.local_addr().unwrap());
    (listener, url)
}

async fn start_push_worker(user: &User, slots: u32) -> WorkerHandle {
    let (listener, url) = listener().await;
    let (_, worker) = user.push_worker(&url, slots);
    let handle = worker.handle();
    tokio::spawn(worker.run(listener));
    handle
}

#[tokio::test]
async fn a_pushed_task_is_queued_dispatched_started_and_finished() {
    let running = Running::shared().await;
    let user = running.user();
    user.deploy(manifest(vec![asset("push/a", &[], "")]))
        .await
        .unwrap();
    // The port accepts connections, but responds to none before the worker runs.
    let (listener, url) = listener().await;
    let (register, worker) = user.push_worker(&url, 4);
    user.client
        .dispatcher()
        .register_worker(register)
        .await
        .unwrap();
    let run = user.trigger(&["push.*"]).await.unwrap();
    let task = until("the task to be dispatched", async || {
        let task = user.tasks(&run.run_id).await.unwrap().remove(0);
        (task.state() == TaskState::Dispatched).then_some(task)
    })
    .await;
    let dispatches = user.dispatches().await.unwrap();
    assert_eq!(dispatches.len(), 1);
    let dispatch = &dispatches[0];
    assert_eq!(
        (dispatch.mode(), dispatch.state()),
        (DispatchMode::Push, QueueEntryState::Created)
    );
    assert_eq!(
        (dispatch.queue.as_str(), dispatch.task_id.as_str()),
        ("dispatch-0", task.task_id.as_str())
    );
    tokio::spawn(worker.run(listener));
    let ended = user.wait_for_end(&run.run_id).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");
    let details = user.task(&run.run_id, &task.task_id).await.unwrap();
    let path: Vec<TaskState> = details
        .history
        .iter()
        .map(|change| change.to_state())
        .collect();
    let expected = [
        TaskState::Queued,
        TaskState::Dispatched,
        TaskState::Running,
        TaskState::Succeeded,
    ];
    assert!(path.ends_with(&expected), "{path:?}");
    assert_eq!(details.attempts.len(), 1);
}

/// Accepts one delivery of the queue without a worker; returns its envelope.
async fn delivered(listener: &TcpListener) -> TaskEnvelope {
    let (mut stream, _) = listener.accept().await.unwrap();
    let request = read_request(&mut stream).await.unwrap();
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let head = request
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap()
        + 4;
    let signed = SignedEnvelope::decode(&request[head..]).unwrap();
    TaskEnvelope::decode(signed.envelope.as_ref()).unwrap()
}

/// Requests permission to start the attempt, as a push worker does.
async fn start_attempt(
    user: &User,
    worker_id: &str,
    envelope: &TaskEnvelope,
) -> Result<Acceptance, tonic::Status> {
    let mut request = tonic::Request::new(StartAttemptRequest {
        tenant: envelope.tenant.clone(),
        workspace: envelope.workspace.clone(),
        run_id: envelope.run_id.clone(),
        attempt_id: envelope.attempt_id.clone(),
        task: envelope.task,
        worker_id: worker_id.to_owned(),
        session: "a process".to_owned(),
        mode: envelope.mode,
        ..Default::default()
    });
    let path = envelope.callbacks.as_ref().unwrap().start.parse().unwrap();
    request.metadata_mut().insert("servo-presigned", path);
    let response = user.client.callback().start_attempt(request).await?;
    Ok(response.into_inner().acceptance())
}

#[tokio::test]
async fn f06_a_start_that_was_not_folded_is_not_a_permission() {
    let mut running = Running::start_with(|options| options.timings(LivenessTimings::FAST)).await;
    let user = User::of(&running.mesh).unwrap();
    user.deploy(manifest(vec![asset("push/a", &[], "")]))
        .await
        .unwrap();
    let (listener, url) = listener().await;
    let (register, _) = user.push_worker(&url, 4);
    let worker = register.worker_id.clone();
    user.client
        .dispatcher()
        .register_worker(register)
        .await
        .unwrap();
    user.trigger(&["push.*"]).await.unwrap();
    let envelope = delivered(&listener).await;
    running
        .mesh
        .process(Service::Scheduler)
        .unwrap()
        .kill_group()
        .unwrap();
    // The first call records the start, and the second finds it recorded.
    for _ in 0..2 {
        let refused = start_attempt(&user, &worker, &envelope).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::Unavailable, "{refused:?}");
        assert!(
            refused
                .message()
                .contains("no scheduler has confirmed it yet"),
            "{refused:?}"
        );
    }
    running.mesh.launch(Service::Scheduler).unwrap();
    let acceptance = until("the scheduler to fold the start", async || {
        let result = start_attempt(&user, &worker, &envelope).await;
        result
            .inspect_err(|status| {
                assert_eq!(status.code(), tonic::Code::Unavailable, "{status:?}");
            })
            .ok()
    })
    .await;
    assert_eq!(acceptance, Acceptance::Duplicate);
}

#[tokio::test]
async fn f11_pushed_tasks_survive_kill_9_of_the_dispatcher() {
    let mut running = Running::start_with(|options| options.timings(LivenessTimings::FAST)).await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = start_push_worker(&user, 4).await;
    let sleep = r#"{"do":"sleep","ms":100}"#;
    let keys: Vec<String> = (0..30).map(|n| format!("push/t{n}")).collect();
    user.deploy(manifest(
        keys.iter().map(|key| asset(key, &[], sleep)).collect(),
    ))
    .await
    .unwrap();
    let run = user.trigger(&["push.*"]).await.unwrap();
    user.wait_for_tasks(&run.run_id, "five tasks to succeed", |tasks| {
        tasks.succeeded >= 5
    })
    .await
    .unwrap();
    running
        .mesh
        .process(Service::Dispatcher)
        .unwrap()
        .kill_group()
        .unwrap();
    running.mesh.launch(Service::Dispatcher).unwrap();
    let ended = user.wait_for_end(&run.run_id).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");
    let tasks = user.tasks(&run.run_id).await.unwrap();
    assert!(tasks.iter().all(|task| task.failures == 0), "{tasks:?}");
}

/// Deploys assets without dependencies.
async fn deploy_independent(user: &User, tasks: usize) {
    let sleep = r#"{"do":"sleep","ms":50}"#;
    let one = |n| with_short_timeouts(asset(&format!("push/t{n}"), &[], sleep));
    user.deploy(manifest((0..tasks).map(one).collect()))
        .await
        .unwrap();
}

/// Asserts that every task succeeded, and that every attempt that counts began once, however often
/// it was delivered.
async fn assert_each_began_once(
    user: &User,
    run: &str,
    journal: &Path,
    tasks: usize,
) -> journal::Comparison {
    let ended = user.wait_for_end(run).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");
    let ends = journal::attempt_ends(user, &[run.to_owned()])
        .await
        .unwrap();
    let comparison = journal::compare(&journal::read(journal).unwrap(), &ends, &[]);
    assert_eq!((&comparison.faults, comparison.counted), (&vec![], tasks));
    assert!(
        user.tasks(run)
            .await
            .unwrap()
            .iter()
            .all(|task| task.failures == 0)
    );
    comparison
}

/// One request with its body.
async fn read_request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut request = Vec::new();
    loop {
        let head = request
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .map(|at| at + 4);
        let length = head.and_then(|head| {
            let text = String::from_utf8_lossy(&request[..head]).to_lowercase();
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("content-length:").map(str::to_owned));
            line.and_then(|line| line.trim().parse::<usize>().ok())
                .map(|body| head + body)
        });
        if length.is_some_and(|length| request.len() >= length) {
            return Some(request);
        }
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
    }
}

async fn forward(request: &[u8], worker: &str) -> Option<String> {
    let mut stream = TcpStream::connect(worker).await.ok()?;
    stream.write_all(request).await.ok()?;
    let mut answer = vec![0; 1024];
    let length = stream.read(&mut answer).await.ok()?;
    String::from_utf8_lossy(&answer[..length])
        .lines()
        .next()
        .map(str::to_owned)
}

/// Forwards every delivery twice, and answers the first delivery of each envelope with an error
/// even if it was accepted, so that the queue repeats it.
async fn redeliver(listener: TcpListener, worker: String) {
    let seen = Arc::new(Mutex::new(HashSet::new()));
    while let Ok((mut stream, _)) = listener.accept().await {
        let (seen, worker) = (seen.clone(), worker.clone());
        tokio::spawn(async move {
            let request = read_request(&mut stream).await?;
            let (_, answer) = tokio::join!(forward(&request, &worker), forward(&request, &worker));
            let again = seen.lock().unwrap().insert(request);
            let answer = answer
                .filter(|_| !again)
                .unwrap_or("HTTP/1.1 503 Service Unavailable".to_owned());
            let answer = format!("{answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.ok()
        });
    }
}

#[tokio::test]
async fn f06_f16_an_envelope_that_is_delivered_four_times_starts_once() {
    const TASKS: usize = 40;
    let mut running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    deploy_independent(&user, TASKS).await;
    let ((proxy, url), (listening, _)) = (listener().await, listener().await);
    let address = listening.local_addr().unwrap().to_string();
    tokio::spawn(redeliver(proxy, address));
    let journal = running.file("journal");
    let (_, worker) =
        user.push_worker_with_journal(&url, 16, Some(Journal::open(&journal).unwrap()));
    tokio::spawn(worker.run(listening));
    let run = user.trigger(&["push.*"]).await.unwrap().run_id;
    let comparison = assert_each_began_once(&user, &run, &journal, TASKS).await;
    assert!(
        comparison.explained.is_empty(),
        "a redelivery cost an attempt: {:?}",
        comparison.explained
    );
    invariants::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().await.unwrap();
}

#[tokio::test]
async fn f16_an_entry_whose_creation_has_an_unknown_outcome_is_looked_up() {
    let mut running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let (tasks, cuts) = if full() { (500, 200) } else { (60, 10) };
    deploy_independent(&user, tasks).await;
    let (listening, url) = listener().await;
    let journal = running.file("journal");
    let (_, worker) =
        user.push_worker_with_journal(&url, 16, Some(Journal::open(&journal).unwrap()));
    tokio::spawn(worker.run(listening));
    let run = user.trigger(&["push.*"]).await.unwrap().run_id;
    // Cuts the connections of the dispatcher, so that it does not learn whether the statement in
    // progress was committed.
    let mut admin = PgConnection::connect(running.mesh.admin_url())
        .await
        .unwrap();
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'servo_dispatcher%'";
    for _ in 0..cuts {
        sqlx::query(cut).execute(&mut admin).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_each_began_once(&user, &run, &journal, tasks).await;
    invariants::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().await.unwrap();
}

#[tokio::test]
async fn f11_tasks_whose_queue_entries_were_deleted_are_pushed_again() {
    let mut running = Running::start_with(|options| options.timings(LivenessTimings::FAST)).await;
    let user = User::of(&running.mesh).unwrap();
    let tasks: u32 = if full() { 1_000 } else { 50 };
    deploy_independent(&user, tasks as usize).await;
    // The port accepts connections, but responds to none before the worker runs.
    let (listening, url) = listener().await;
    let journal = running.file("journal");
    let (register, worker) =
        user.push_worker_with_journal(&url, tasks, Some(Journal::open(&journal).unwrap()));
    user.client
        .dispatcher()
        .register_worker(register)
        .await
        .unwrap();
    let run = user.trigger(&["push.*"]).await.unwrap().run_id;
    user.wait_for_tasks(&run, "all attempts to begin", |counts| {
        counts.active == tasks
    })
    .await
    .unwrap();
    let mut admin = PgConnection::connect(running.mesh.admin_url())
        .await
        .unwrap();
    let queued = "SELECT count(*) FROM dispatcher.queue_entries";
    until_true("all tasks to be in the queue", async || {
        let count: i64 = sqlx::query_scalar(queued)
            .fetch_one(&mut admin)
            .await
            .unwrap();
        count >= i64::from(tasks)
    })
    .await;
    let delete = "DELETE FROM dispatcher.queue_entries WHERE name IN
        (SELECT name FROM dispatcher.queue_entries LIMIT $1)";
    let deleted = sqlx::query(delete)
        .bind(i64::from(tasks / 2))
        .execute(&mut admin)
        .await
        .unwrap()
        .rows_affected();
    running.mesh.kill_9(Service::Scheduler).unwrap();
    let rest = sqlx::query("DELETE FROM dispatcher.queue_entries")
        .execute(&mut admin)
        .await
        .unwrap();
    assert!(
        deleted + rest.rows_affected() >= u64::from(tasks),
        "the queue had too few entries"
    );
    running.mesh.launch(Service::Scheduler).unwrap();
    running.mesh.wait_until_healthy().await.unwrap();
    tokio::spawn(worker.run(listening));
    assert_each_began_once(&user, &run, &journal, tasks as usize).await;
    invariants::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().await.unwrap();
}

#[tokio::test]
async fn a_push_url_that_the_operator_did_not_allow_is_refused() {
    let running = Running::shared().await;
    let user = running.user();
    for url in [
        "http://169.254.169.254/latest",
        "http://127.0.0.1.evil.example/",
        "gopher://127.0.0.1/",
        "x",
    ] {
        let (register, _) = user.push_worker(url, 1);
        let refused = user
            .client
            .dispatcher()
            .register_worker(register)
            .await
            .unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{url}");
        assert!(
            refused.message().contains("info.push_url"),
            "{}",
            refused.message()
        );
    }
}
