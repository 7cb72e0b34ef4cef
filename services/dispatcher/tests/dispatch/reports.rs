//! A model of the callback service that checks signatures, counts, and reports ends to the
//! scheduler.

use std::collections::BTreeMap;

use servo_model::AttemptId;
use servo_model::presign::{CallbackVerb, KeyRing, SigningKey};
use servo_proto::v1 as pb;
use servo_proto::v1::callback_item::Call;
use servo_proto::v1::callback_result::Result as Answer;
use servo_proto::v1::callback_service_server::CallbackService;
use tokio_stream::StreamExt;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};

use crate::owner::Owner;
use crate::world::{SECRET, Shared};

#[derive(Clone)]
pub(crate) struct Reports {
    owner: Owner,
    keys: KeyRing,
    seen: Shared<Seen>,
}

#[derive(Default)]
struct Seen {
    finished: BTreeMap<AttemptId, (usize, pb::Outcome)>,
    started: usize,
}

impl Reports {
    pub(crate) fn new(owner: Owner) -> Reports {
        let keys = KeyRing::new(SigningKey::new("k1", SECRET.as_bytes()).unwrap(), []).unwrap();
        Reports {
            owner,
            keys,
            seen: Shared::default(),
        }
    }

    pub(crate) fn finished(&self) -> usize {
        self.seen.lock().unwrap().finished.len()
    }

    pub(crate) fn started(&self) -> usize {
        self.seen.lock().unwrap().started
    }

    /// Returns how often each attempt was reported and its outcome.
    pub(crate) fn outcomes(&self) -> Vec<(usize, pb::Outcome)> {
        self.seen
            .lock()
            .unwrap()
            .finished
            .values()
            .copied()
            .collect()
    }

    fn handle(&self, item: pb::CallbackItem, ended: &mut Vec<AttemptId>) -> pb::CallbackResult {
        let path = self
            .keys
            .verify_callback(&item.presigned, 0)
            .expect("the path is signed");
        let answer = match item.call.unwrap() {
            Call::Start(_) => {
                assert_eq!(path.verb, CallbackVerb::Start);
                self.seen.lock().unwrap().started += 1;
                Answer::Start(pb::StartAttemptResponse::default())
            }
            Call::Heartbeat(_) => {
                assert_eq!(path.verb, CallbackVerb::Heartbeat);
                Answer::Heartbeat(pb::HeartbeatResponse::default())
            }
            Call::Logs(_) => Answer::Logs(pb::AppendLogsResponse::default()),
            Call::Finish(finish) => {
                assert_eq!(path.verb, CallbackVerb::Finished);
                assert_eq!(path.attempt.to_string(), finish.attempt_id);
                let mut seen = self.seen.lock().unwrap();
                let entry = seen
                    .finished
                    .entry(path.attempt)
                    .or_insert((0, finish.outcome()));
                entry.0 += 1;
                ended.push(path.attempt);
                Answer::Finish(pb::FinishAttemptResponse::default())
            }
        };
        pb::CallbackResult {
            number: item.number,
            result: Some(answer),
        }
    }
}

#[tonic::async_trait]
impl CallbackService for Reports {
    async fn stream_callbacks(
        &self,
        request: Request<Streaming<pb::StreamCallbacksRequest>>,
    ) -> Result<Response<BoxStream<pb::StreamCallbacksResponse>>, Status> {
        let reports = self.clone();
        let answer = move |request: Result<pb::StreamCallbacksRequest, Status>| {
            let mut ended = Vec::new();
            let results = request?
                .items
                .into_iter()
                .map(|item| reports.handle(item, &mut ended))
                .collect();
            reports.owner.ended(&ended);
            Ok(pb::StreamCallbacksResponse { results })
        };
        Ok(Response::new(Box::pin(request.into_inner().map(answer))))
    }
}
