//! A worker returns attempts that it cannot execute.

use prost::Message as _;
use servo_client::api;
use servo_client::api::pull_tasks_request::Message as Request;
use servo_client::api::pull_tasks_response::Message as Response;
use servo_tests::manifest::{asset, manifest};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Streaming;

use crate::support::Running;

async fn next_envelope(responses: &mut Streaming<api::PullTasksResponse>) -> api::TaskEnvelope {
    loop {
        let response = responses
            .message()
            .await
            .unwrap()
            .expect("the stream continues");
        if let Some(Response::Envelopes(batch)) = response.message {
            return api::TaskEnvelope::decode(&*batch.envelopes[0].envelope).unwrap();
        }
    }
}

#[tokio::test]
async fn a_task_that_a_worker_returns_unstarted_is_ready_again_at_once() {
    let running = Running::shared().await;
    let user = running.user();
    let worker_id = ulid::Ulid::generate().to_string();
    let message = |message: Request| api::PullTasksRequest {
        tenant: user.tenant().into(),
        worker_id: worker_id.clone(),
        message: Some(message),
    };
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
        tenant: user.tenant().into(),
        worker_id: worker_id.clone(),
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
    requests.send(message(Request::Open(open))).unwrap();
    let pulled = user
        .client
        .dispatcher()
        .pull_tasks(UnboundedReceiverStream::new(outgoing))
        .await
        .unwrap();
    let mut responses = pulled.into_inner();
    let run = user.trigger(&["back.a"]).await.unwrap();
    let first = next_envelope(&mut responses).await;
    let returned = api::PullReturn {
        attempt_ids: vec![first.attempt_id.clone()],
        comment: "full".into(),
    };
    requests.send(message(Request::Returned(returned))).unwrap();
    let second = next_envelope(&mut responses).await;
    assert_eq!((first.attempt, second.attempt, second.failures), (1, 2, 0));
    let details = user.task(&run.run_id, &second.task_id).await.unwrap();
    let reasons: Vec<_> = details
        .history
        .iter()
        .map(|change| change.reason())
        .collect();
    assert!(
        reasons.contains(&api::TransitionReason::Interrupted),
        "{reasons:?}"
    );
    // A worker cannot return an attempt twice, nor an attempt of another worker.
    let again = api::PullReturn {
        attempt_ids: vec![first.attempt_id, "x".into()],
        comment: String::new(),
    };
    requests.send(message(Request::Returned(again))).unwrap();
    let tasks = user.tasks(&run.run_id).await.unwrap();
    assert_eq!(tasks[0].failures, 0);
}
