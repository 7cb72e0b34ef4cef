//! A lane without its loop, so that tests do not depend on timing.

use std::time::Duration;

use servo_model::{RunId, ShardId, Stream};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1 as pb;
use servo_store::{Lease, LeaseTtl, Leases, Store};
use tokio::sync::{mpsc, oneshot, watch};

use super::{assert_folded, claim, dispatcher_stream, known_plan, run_with};
use crate::core::Limits;
use crate::metrics::Metrics;
use crate::shards::command::Submission;
use crate::shards::lane::{Lane, Shared};
use crate::shards::{Command, LaneContext, Plans};

/// A lane whose steps a test calls directly.
pub(super) struct ManualLane {
    pub(super) lane: Lane,
    plans: Plans,
    _messages: mpsc::Receiver<mesh_pb::AdmitResponse>,
    _limits_tx: watch::Sender<Limits>,
}

impl ManualLane {
    pub(super) async fn holding(store: &Store, lease: Lease) -> ManualLane {
        let (limits_tx, limits) = watch::channel(Limits::none());
        let (plan_requests, _) = mpsc::channel(10_000);
        let (plans, metrics) = (Plans::default(), Metrics::default());
        let context = LaneContext {
            plans: plans.clone(),
            plan_requests,
            metrics,
            bus_doorbell: None,
            limits,
        };
        let mut lane = Lane::new(store.clone(), context, Shared::default());
        let (stream, messages) = dispatcher_stream(1);
        lane.open_stream(stream);
        lane.try_load_shard(lease).await.unwrap();
        ManualLane {
            lane,
            plans,
            _messages: messages,
            _limits_tx: limits_tx,
        }
    }

    /// Flushes the commands together; all of them must be folded.
    pub(super) async fn fold(&mut self, commands: Vec<Command>) {
        let (reply, answer) = oneshot::channel();
        self.lane
            .flush(vec![Submission {
                shard: commands[0].run_id().shard(),
                commands,
                reply,
            }])
            .await;
        answer
            .await
            .unwrap()
            .unwrap()
            .iter()
            .for_each(assert_folded);
    }

    /// Begins a run of `plan` and claims all of its tasks.
    pub(super) async fn claimed(&mut self, plan: &pb::Plan, id: RunId) {
        self.fold(vec![run_with(known_plan(&self.plans, plan), id, "f")])
            .await;
        let tasks = u32::try_from(plan.tasks.len()).unwrap();
        self.fold((0..tasks).map(|ordinal| claim(id, ordinal, 1, 1)).collect())
            .await;
    }
}

pub(super) fn leases(store: &Store, holder: &str) -> Leases {
    let ttl = LeaseTtl::new(Duration::from_secs(60)).unwrap();
    Leases::new(
        store.loops(),
        Stream::Execution,
        holder,
        "https://nowhere:1",
        ttl,
    )
}

pub(super) async fn hold(store: &Store, shard: ShardId) -> Lease {
    leases(store, "by hand")
        .acquire(&[shard], 1)
        .await
        .unwrap()
        .remove(0)
}
