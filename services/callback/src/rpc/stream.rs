//! StreamCallbacks: many calls on one stream, answered as they are done.

use futures::StreamExt;
use servo_mesh::{Error, Reason};
use servo_proto::v1;
use servo_proto::v1::callback_item::Call;
use servo_proto::v1::callback_result::Result as Answer;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Streaming;

use super::{Answers, Callback};
use crate::core::Shown;

/// What one message carries at most.
const ITEMS_MAX: usize = 256;

pub(super) fn stream_callbacks(
    callback: Callback,
    calls: Streaming<v1::StreamCallbacksRequest>,
) -> Answers<v1::StreamCallbacksResponse> {
    let (results, answered) = mpsc::unbounded_channel();
    tokio::spawn(listen(callback, calls, results));
    // What is answered while a message is on its way travels in the next one.
    let gathered = UnboundedReceiverStream::new(answered).ready_chunks(ITEMS_MAX);
    Box::pin(gathered.map(|results| Ok(v1::StreamCallbacksResponse { results })))
}

async fn listen(
    callback: Callback,
    mut calls: Streaming<v1::StreamCallbacksRequest>,
    results: mpsc::UnboundedSender<v1::CallbackResult>,
) {
    while let Ok(Some(message)) = calls.message().await {
        for item in message.items {
            let (callback, results) = (callback.clone(), results.clone());
            tokio::spawn(async move {
                let number = item.number;
                let result = answer(&callback, item).await;
                let _ = results.send(v1::CallbackResult {
                    number,
                    result: Some(result),
                });
            });
        }
    }
}

async fn answer(callback: &Callback, item: v1::CallbackItem) -> Answer {
    let shown = Shown {
        presigned: &item.presigned,
        renewal: &item.renewal,
    };
    let trace = item.trace;
    let answered = match item.call {
        Some(Call::Start(asked)) => callback.start(shown, asked, trace).await.map(Answer::Start),
        Some(Call::Heartbeat(asked)) => callback.beat(shown, asked).await.map(Answer::Heartbeat),
        Some(Call::Logs(asked)) => callback.append(shown, asked).await.map(Answer::Logs),
        Some(Call::Finish(asked)) => callback
            .finish(shown, asked, trace)
            .await
            .map(Answer::Finish),
        None => Err(Error::bad_field(
            "call",
            "is not given, or of a kind that is not known here",
        )),
    };
    answered.unwrap_or_else(|error| Answer::Refusal(refusal(&error)))
}

fn refusal(error: &Error) -> v1::CallbackRefusal {
    let again = matches!(
        error.reason(),
        Reason::NotReady | Reason::NotHolder | Reason::DependencyUnavailable
    );
    v1::CallbackRefusal {
        reason: error.reason().into(),
        message: error.to_string(),
        retry_after: again.then_some(prost_types::Duration {
            seconds: 1,
            nanos: 0,
        }),
    }
}
