//! Tasks that are pushed: through the queue, over HTTP, to a worker that asks before it starts.

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
use servo_model::Service;
use servo_tests::manifest::{asset, impatient, manifest};
use servo_tests::user::User;
use servo_tests::worker::Journal;
use servo_tests::{aftermath, full, journal};
use sqlx::{Connection, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Running, binaries};

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
    user.deploy(manifest(vec![asset("push/a", &[], "")]))
        .await
        .unwrap();
    // The port takes connections, and nobody answers on them before the worker runs.
    let (listener, url) = listener().await;
    let (register, worker) = user.push_worker(&url, 4);
    user.client
        .dispatcher()
        .register_worker(register)
        .await
        .unwrap();
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
    assert_eq!(
        (dispatch.mode(), dispatch.state()),
        (DispatchMode::Push, QueueEntryState::Created)
    );
    assert_eq!(
        (dispatch.queue.as_str(), dispatch.task_id.as_str()),
        ("dispatch-0", task.task_id.as_str())
    );
    tokio::spawn(worker.run(listener));
    let ended = user.ended(&run.run_id).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");
    let told = user.task(&run.run_id, &task.task_id).await.unwrap();
    let path: Vec<TaskState> = told
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
    assert_eq!(told.attempts.len(), 1);
}

/// The work order that a queue delivers, without a worker behind the port.
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

/// Asks whether the attempt may start, as a worker that is pushed to does.
async fn ask_to_start(
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
    let answer = user.client.callback().start_attempt(request).await?;
    Ok(answer.into_inner().acceptance())
}

#[tokio::test]
async fn f06_a_start_that_nobody_has_folded_is_no_permission() {
    let mut running = Running::start().await;
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
    // The first time it is recorded, afterwards it is on record.
    for _ in 0..2 {
        let refused = ask_to_start(&user, &worker, &envelope).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::Unavailable, "{refused:?}");
        assert!(
            refused
                .message()
                .contains("nobody has said yet that it counts"),
            "{refused:?}"
        );
    }
    running.mesh.launch(Service::Scheduler).unwrap();
    let acceptance = loop {
        match ask_to_start(&user, &worker, &envelope).await {
            Ok(acceptance) => break acceptance,
            Err(status) => assert_eq!(status.code(), tonic::Code::Unavailable, "{status:?}"),
        }
    };
    assert_eq!(acceptance, Acceptance::Duplicate);
}

#[tokio::test]
async fn f11_pushed_tasks_survive_kill_9_of_the_dispatcher() {
    let mut running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = listen(&user, 4).await;
    let nap = r#"{"do":"sleep","ms":100}"#;
    let keys: Vec<String> = (0..30).map(|n| format!("push/t{n}")).collect();
    user.deploy(manifest(
        keys.iter().map(|key| asset(key, &[], nap)).collect(),
    ))
    .await
    .unwrap();
    let run = user.trigger(&["push.*"]).await.unwrap();
    user.until(&run.run_id, |tasks| tasks.succeeded >= 5)
        .await
        .unwrap();
    running
        .mesh
        .process(Service::Dispatcher)
        .unwrap()
        .kill_group()
        .unwrap();
    running.mesh.launch(Service::Dispatcher).unwrap();
    let ended = user.ended(&run.run_id).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");
    let tasks = user.tasks(&run.run_id).await.unwrap();
    assert!(tasks.iter().all(|task| task.failures == 0), "{tasks:?}");
}

/// So many tasks that wait for nothing.
async fn deploy_loose(user: &User, tasks: usize) {
    let nap = r#"{"do":"sleep","ms":50}"#;
    let one = |n| impatient(asset(&format!("push/t{n}"), &[], nap));
    user.deploy(manifest((0..tasks).map(one).collect()))
        .await
        .unwrap();
}

/// Whatever was delivered, and however often: every task succeeded, and every attempt that counts began once.
async fn assert_each_began_once(
    user: &User,
    run: &str,
    journal: &Path,
    tasks: usize,
) -> journal::Tally {
    let ended = user.ended(run).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");
    let fates = journal::fates(user, &[run.to_owned()]).await.unwrap();
    let tally = journal::compare(&journal::read(journal).unwrap(), &fates, &[]);
    assert_eq!((&tally.faults, tally.counted), (&vec![], tasks));
    assert!(
        user.tasks(run)
            .await
            .unwrap()
            .iter()
            .all(|task| task.failures == 0)
    );
    tally
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

async fn pass_on(request: &[u8], worker: &str) -> Option<String> {
    let mut stream = TcpStream::connect(worker).await.ok()?;
    stream.write_all(request).await.ok()?;
    let mut answer = vec![0; 1024];
    let length = stream.read(&mut answer).await.ok()?;
    String::from_utf8_lossy(&answer[..length])
        .lines()
        .next()
        .map(str::to_owned)
}

/// Delivers everything twice, and answers every first delivery that was taken as if it had failed.
async fn redeliver(listener: TcpListener, worker: String) {
    let seen = Arc::new(Mutex::new(HashSet::new()));
    while let Ok((mut stream, _)) = listener.accept().await {
        let (seen, worker) = (seen.clone(), worker.clone());
        tokio::spawn(async move {
            let request = read_request(&mut stream).await?;
            let (_, answer) = tokio::join!(pass_on(&request, &worker), pass_on(&request, &worker));
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
async fn f06_f16_a_queue_that_delivers_everything_four_times_starts_nothing_twice() {
    const TASKS: usize = 40;
    let mut running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    deploy_loose(&user, TASKS).await;
    let ((door, url), (listening, _)) = (listener().await, listener().await);
    let address = listening.local_addr().unwrap().to_string();
    tokio::spawn(redeliver(door, address));
    let journal = running.file("journal");
    let (_, worker) = user.push_worker_noting(&url, 16, Some(Journal::open(&journal).unwrap()));
    tokio::spawn(worker.run(listening));
    let run = user.trigger(&["push.*"]).await.unwrap().run_id;
    let tally = assert_each_began_once(&user, &run, &journal, TASKS).await;
    assert!(
        tally.explained.is_empty(),
        "a redelivery cost an attempt: {:?}",
        tally.explained
    );
    aftermath::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().unwrap();
}

#[tokio::test]
async fn f16_whether_an_entry_was_made_is_found_out_when_the_answer_is_lost() {
    let mut running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let (tasks, cuts) = if full() { (500, 200) } else { (60, 10) };
    deploy_loose(&user, tasks).await;
    let (listening, url) = listener().await;
    let journal = running.file("journal");
    let (_, worker) = user.push_worker_noting(&url, 16, Some(Journal::open(&journal).unwrap()));
    tokio::spawn(worker.run(listening));
    let run = user.trigger(&["push.*"]).await.unwrap().run_id;
    // Whatever statement of the dispatcher is under way: it may have been stored, and nobody says so.
    let mut admin = PgConnection::connect(running.mesh.admin_url())
        .await
        .unwrap();
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'servo_dispatcher%'";
    for _ in 0..cuts {
        sqlx::query(cut).execute(&mut admin).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_each_began_once(&user, &run, &journal, tasks).await;
    aftermath::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().unwrap();
}

#[tokio::test]
async fn f11_tasks_whose_queue_entries_are_gone_are_pushed_anew() {
    let mut running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let tasks: u32 = if full() { 1_000 } else { 50 };
    deploy_loose(&user, tasks as usize).await;
    // The port takes connections, and nobody answers on them before the worker runs.
    let (listening, url) = listener().await;
    let journal = running.file("journal");
    let (register, worker) =
        user.push_worker_noting(&url, tasks, Some(Journal::open(&journal).unwrap()));
    user.client
        .dispatcher()
        .register_worker(register)
        .await
        .unwrap();
    let run = user.trigger(&["push.*"]).await.unwrap().run_id;
    user.until(&run, |counts| counts.active == tasks)
        .await
        .unwrap();
    let mut admin = PgConnection::connect(running.mesh.admin_url())
        .await
        .unwrap();
    let queued = "SELECT count(*) FROM dispatcher.queue_entries";
    while sqlx::query_scalar::<_, i64>(queued)
        .fetch_one(&mut admin)
        .await
        .unwrap()
        < i64::from(tasks)
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let wipe = "DELETE FROM dispatcher.queue_entries WHERE name IN
        (SELECT name FROM dispatcher.queue_entries LIMIT $1)";
    let wiped = sqlx::query(wipe)
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
        wiped + rest.rows_affected() >= u64::from(tasks),
        "there was not much to wipe"
    );
    running.mesh.launch(Service::Scheduler).unwrap();
    running.mesh.wait_until_healthy().await.unwrap();
    tokio::spawn(worker.run(listening));
    assert_each_began_once(&user, &run, &journal, tasks as usize).await;
    aftermath::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().unwrap();
}

#[tokio::test]
async fn a_place_that_no_operator_allowed_is_not_pushed_to() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
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
