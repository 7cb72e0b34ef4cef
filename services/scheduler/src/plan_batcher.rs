//! Batches calls of the planner: orders that arrive during a call form the next one.

use servo_actor::{BatchHandler, Batcher, Limits};
use servo_mesh::{Error, Peer, Reason};
use servo_model::limits::MESSAGE_BYTES_MAX;
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::planner_mesh_service_client::PlannerMeshServiceClient;
use servo_service::errors;

/// How many orders one call contains.
const ORDERS_PER_CALL_MAX: usize = 256;
/// Orders that wait; a caller beyond it waits for capacity.
const ORDERS_QUEUED_MAX: usize = 16_384;

/// The handle of the batching actor. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct PlanBatcher {
    batcher: Batcher<mesh_pb::PlanOrder, Planned>,
}

type Planned = Result<mesh_pb::StoredPlan, Error>;

impl PlanBatcher {
    pub(crate) fn start(planner: Peer) -> PlanBatcher {
        let limits = Limits::items(ORDERS_PER_CALL_MAX, ORDERS_QUEUED_MAX);
        let caller = PlannerCaller {
            // The planner only names the plans for which an answer has no space.
            client: PlannerMeshServiceClient::new(planner)
                .max_decoding_message_size(MESSAGE_BYTES_MAX),
        };
        PlanBatcher {
            batcher: Batcher::start("plan batcher", limits, caller),
        }
    }

    /// Returns the stored plan, or the reason why there is none.
    pub(crate) async fn plan(&self, order: mesh_pb::PlanOrder) -> Planned {
        self.batcher.call(order).await.map_err(errors::stopped)?
    }
}

struct PlannerCaller {
    client: PlannerMeshServiceClient<Peer>,
}

impl BatchHandler for PlannerCaller {
    type Item = mesh_pb::PlanOrder;
    type Answer = Planned;

    async fn run(&mut self, orders: Vec<mesh_pb::PlanOrder>) -> Vec<Planned> {
        let count = orders.len();
        match self
            .client
            .make_plans(mesh_pb::MakePlansRequest { orders })
            .await
        {
            Ok(answer) => {
                let mut results = answer.into_inner().results.into_iter();
                (0..count).map(|_| planned(results.next())).collect()
            }
            Err(status) => {
                let message = format!(
                    "the planner did not answer ({}); try again in a moment",
                    status.message()
                );
                let failed = || Err(Error::new(Reason::NotReady, message.clone()));
                (0..count).map(|_| failed()).collect()
            }
        }
    }
}

fn planned(result: Option<mesh_pb::PlanResult>) -> Planned {
    match result.and_then(|result| result.result) {
        Some(mesh_pb::plan_result::Result::Plan(plan)) => Ok(plan),
        Some(mesh_pb::plan_result::Result::Refusal(refusal)) => Err(refused(&refusal)),
        None => Err(Error::new(
            Reason::Internal,
            "the planner returned fewer plans than were ordered",
        )),
    }
}

fn refused(refusal: &mesh_pb::PlanRefusal) -> Error {
    let error = Error::new(refusal.reason(), refusal.message.clone());
    if refusal.field.is_empty() {
        error
    } else {
        error.and_bad_field(&refusal.field, &refusal.message)
    }
}
