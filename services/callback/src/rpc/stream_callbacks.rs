//! StreamCallbacks: many calls on one stream, each answered as soon as it is done.

use futures::StreamExt;
use servo_mesh::{Error, Reason};
use servo_proto::v1 as pb;
use servo_proto::v1::callback_item::Call;
use servo_proto::v1::callback_result::Result as CallResult;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use super::append_logs::append_logs;
use super::finish_attempt::finish_attempt;
use super::heartbeat::heartbeat;
use super::start_attempt::start_attempt;
use super::{Callback, ResponseStream};
use crate::core::PresentedPaths;

/// Results per message.
const ITEMS_MAX: usize = 256;
/// Calls of one stream that are carried out at once, or whose results were not read yet.
const ITEMS_IN_FLIGHT_MAX: usize = 1_024;

pub(super) fn stream_callbacks(
    callback: Callback,
    calls: Streaming<pb::StreamCallbacksRequest>,
) -> ResponseStream<pb::StreamCallbacksResponse> {
    let (results, answered) = mpsc::channel(ITEMS_IN_FLIGHT_MAX);
    servo_actor::spawn_task("callback stream", read(callback, calls, results));
    // Results that are ready while a message is being sent are batched into the next one.
    let batches = ReceiverStream::new(answered).ready_chunks(ITEMS_MAX);
    Box::pin(batches.map(|results| Ok(pb::StreamCallbacksResponse { results })))
}

/// Carries out the calls of a stream side by side, as many as [`ITEMS_IN_FLIGHT_MAX`]; more are
/// not read until some are answered, so that the worker's sending waits.
async fn read(
    callback: Callback,
    mut calls: Streaming<pb::StreamCallbacksRequest>,
    results: mpsc::Sender<pb::CallbackResult>,
) {
    while let Ok(Some(message)) = calls.message().await {
        for item in message.items {
            let Ok(permit) = results.clone().reserve_owned().await else {
                return;
            };
            let callback = callback.clone();
            servo_actor::spawn_task("callback", async move {
                let number = item.number;
                let result = Some(answer(&callback, item).await);
                permit.send(pb::CallbackResult { number, result });
            });
        }
    }
}

async fn answer(callback: &Callback, item: pb::CallbackItem) -> CallResult {
    let presented = PresentedPaths {
        presigned: &item.presigned,
        renewal: &item.renewal,
    };
    let answered = match item.call {
        Some(Call::Start(request)) => start_attempt(callback, presented, request)
            .await
            .map(CallResult::Start),
        Some(Call::Heartbeat(request)) => heartbeat(callback, presented, request)
            .await
            .map(CallResult::Heartbeat),
        Some(Call::Logs(request)) => append_logs(callback, presented, request)
            .await
            .map(CallResult::Logs),
        Some(Call::Finish(request)) => finish_attempt(callback, presented, request)
            .await
            .map(CallResult::Finish),
        None => Err(Error::bad_field(
            "call",
            "is missing, or of a kind that this version does not know",
        )),
    };
    answered.unwrap_or_else(|error| CallResult::Refusal(refusal(&error)))
}

fn refusal(error: &Error) -> pb::CallbackRefusal {
    let is_transient = matches!(
        error.reason(),
        Reason::NotReady | Reason::NotHolder | Reason::DependencyUnavailable
    );
    pb::CallbackRefusal {
        reason: error.reason().into(),
        message: error.to_string(),
        retry_after: is_transient.then_some(prost_types::Duration {
            seconds: 1,
            nanos: 0,
        }),
    }
}
