//! A worker that cannot take what it was sent gives it back.

use prost::Message as _;
use servo_client::api;
use servo_client::api::pull_tasks_request::Message as Say;
use servo_client::api::pull_tasks_response::Message as Told;
use servo_local::TENANT;
use servo_tests::manifest::{asset, manifest};
use servo_tests::user::User;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Streaming;

use crate::support::Running;

const WORKER: &str = "01JD0000000000000000000001";

fn say(message: Say) -> api::PullTasksRequest {
    api::PullTasksRequest {
        tenant: TENANT.into(),
        worker_id: WORKER.into(),
        message: Some(message),
    }
}

async fn next_envelope(answers: &mut Streaming<api::PullTasksResponse>) -> api::TaskEnvelope {
    loop {
        let answer = answers
            .message()
            .await
            .unwrap()
            .expect("the stream goes on");
        if let Some(Told::Envelopes(batch)) = answer.message {
            return api::TaskEnvelope::decode(&*batch.envelopes[0].envelope).unwrap();
        }
    }
}

#[tokio::test]
async fn what_a_worker_gives_back_unstarted_is_ready_again_at_once() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    user.deploy(manifest(vec![asset("back/a", &[], "")]))
        .await
        .unwrap();
    let handlers = vec!["noop".to_owned()];
    let info = api::WorkerInfo {
        name: "by hand".into(),
        slots: 1,
        handlers,
        ..Default::default()
    };
    let register = api::RegisterWorkerRequest {
        tenant: TENANT.into(),
        worker_id: WORKER.into(),
        session: "s".into(),
        info: Some(info),
    };
    user.client
        .dispatcher()
        .register_worker(register)
        .await
        .unwrap();
    let (requests, outgoing) = mpsc::unbounded_channel();
    let open = api::PullOpen {
        session: "s".into(),
        credits: 2,
        ..Default::default()
    };
    requests.send(say(Say::Open(open))).unwrap();
    let pulled = user
        .client
        .dispatcher()
        .pull_tasks(UnboundedReceiverStream::new(outgoing))
        .await
        .unwrap();
    let mut answers = pulled.into_inner();
    let run = user.trigger(&["back.a"]).await.unwrap();
    let first = next_envelope(&mut answers).await;
    let returned = api::PullReturn {
        attempt_ids: vec![first.attempt_id.clone()],
        comment: "full".into(),
    };
    requests.send(say(Say::Returned(returned))).unwrap();
    let second = next_envelope(&mut answers).await;
    assert_eq!((first.attempt, second.attempt, second.failures), (1, 2, 0));
    let told = user.task(&run.run_id, &second.task_id).await.unwrap();
    let reasons: Vec<_> = told.history.iter().map(|change| change.reason()).collect();
    assert!(
        reasons.contains(&api::TransitionReason::Interrupted),
        "{reasons:?}"
    );
    // Another worker's attempt is not its to give back, and what it gave back it cannot give back twice.
    let again = api::PullReturn {
        attempt_ids: vec![first.attempt_id, "x".into()],
        comment: String::new(),
    };
    requests.send(say(Say::Returned(again))).unwrap();
    let tasks = user.tasks(&run.run_id).await.unwrap();
    assert_eq!(tasks[0].failures, 0);
}
