//! Batches calls of the planner: orders that arrive during a call form the next one.

use servo_mesh::{Error, Peer, Reason};
use servo_proto::v1 as pb;
use servo_proto::v1::planner_service_client::PlannerServiceClient;
use tokio::sync::{mpsc, oneshot};

/// How many orders one call contains.
const ORDERS_PER_CALL_MAX: usize = 256;

type Reply = oneshot::Sender<Result<pb::StoredPlan, Error>>;

/// The handle of the batching actor. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct PlanBatcher {
    orders: mpsc::UnboundedSender<(pb::PlanOrder, Reply)>,
}

impl PlanBatcher {
    pub(crate) fn start(planner: Peer) -> PlanBatcher {
        let (orders, inbox) = mpsc::unbounded_channel();
        tokio::spawn(run(
            PlannerServiceClient::new(planner).max_decoding_message_size(MESSAGE_BYTES_MAX),
            inbox,
        ));
        PlanBatcher { orders }
    }

    /// Returns the stored plan, or the reason why there is none.
    pub(crate) async fn plan(&self, order: pb::PlanOrder) -> Result<pb::StoredPlan, Error> {
        let (reply, answer) = oneshot::channel();
        let stopping = || Error::new(Reason::NotReady, "the scheduler is stopping; call again");
        self.orders.send((order, reply)).map_err(|_| stopping())?;
        answer.await.map_err(|_| stopping())?
    }
}

/// The answer contains the plans, up to a megabyte each.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

async fn run(
    client: PlannerServiceClient<Peer>,
    mut inbox: mpsc::UnboundedReceiver<(pb::PlanOrder, Reply)>,
) {
    while let Some(first) = inbox.recv().await {
        tokio::task::yield_now().await;
        let mut batch = vec![first];
        while batch.len() < ORDERS_PER_CALL_MAX
            && let Ok(more) = inbox.try_recv()
        {
            batch.push(more);
        }
        let (orders, replies): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let answer = client
            .clone()
            .make_plans(pb::MakePlansRequest { orders })
            .await;
        match answer {
            Ok(answer) => answer_each(replies, answer.into_inner().results),
            Err(status) => {
                for reply in replies {
                    let message = format!(
                        "the planner did not answer ({}); try again in a moment",
                        status.message()
                    );
                    let _ = reply.send(Err(Error::new(Reason::NotReady, message)));
                }
            }
        }
    }
}

fn answer_each(replies: Vec<Reply>, results: Vec<pb::PlanResult>) {
    let mut results = results.into_iter();
    for reply in replies {
        let answer = match results.next().and_then(|result| result.result) {
            Some(pb::plan_result::Result::Plan(plan)) => Ok(plan),
            Some(pb::plan_result::Result::Refusal(refusal)) => Err(refused(&refusal)),
            None => Err(Error::new(
                Reason::Internal,
                "the planner returned fewer plans than were ordered",
            )),
        };
        let _ = reply.send(answer);
    }
}

fn refused(refusal: &pb::PlanRefusal) -> Error {
    let error = Error::new(refusal.reason(), refusal.message.clone());
    if refusal.field.is_empty() {
        error
    } else {
        error.and_bad_field(&refusal.field, &refusal.message)
    }
}
