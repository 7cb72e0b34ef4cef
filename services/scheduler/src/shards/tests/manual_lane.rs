//! A lane driven by hand, so that nothing depends on who is quicker.

use std::time::Duration;

use servo_model::{RunId, Stream};
use servo_proto::v1 as pb;
use servo_store::{Lease, LeaseTtl, Leases, Store};
use tokio::sync::{mpsc, oneshot, watch};

use super::{claim, folded, known_plan, run_with, stream};
use crate::core::Limits;
use crate::metrics::Metrics;
use crate::shards::command::Submission;
use crate::shards::lane::{Lane, Shared};
use crate::shards::{Command, LaneContext, Plans};

/// A lane without a loop: it does what it is told, when it is told.
pub(super) struct ManualLane {
    pub(super) lane: Lane,
    plans: Plans,
    _told: mpsc::UnboundedReceiver<pb::AdmitResponse>,
    _board: watch::Sender<Limits>,
}

impl ManualLane {
    pub(super) async fn holding(store: &Store, lease: Lease) -> ManualLane {
        let (board, limits) = watch::channel(Limits::none());
        let (unplanned, _) = mpsc::unbounded_channel();
        let (plans, metrics) = (Plans::default(), Metrics::default());
        let context = LaneContext {
            plans: plans.clone(),
            unplanned,
            metrics,
            listeners: None,
            limits,
        };
        let mut lane = Lane::new(store.clone(), context, Shared::default());
        let (stream, message) = stream(1);
        lane.open_stream(stream);
        lane.try_load_shard(lease).await.unwrap();
        ManualLane {
            lane,
            plans,
            _told: message,
            _board: board,
        }
    }

    /// All of it in one flush; all of it must be folded.
    pub(super) async fn fold(&mut self, commands: Vec<Command>) {
        let (reply, answer) = oneshot::channel();
        self.lane
            .flush(vec![Submission {
                shard: commands[0].run_id().shard(),
                commands,
                reply,
            }])
            .await;
        answer.await.unwrap().unwrap().iter().for_each(folded);
    }

    /// A run of `plan`, all of whose tasks are claimed.
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
    Leases::new(store, Stream::Execution, holder, "https://nowhere:1", ttl)
}

pub(super) async fn hold(store: &Store, shard: i16) -> Lease {
    leases(store, "by hand")
        .acquire(&[shard], 1)
        .await
        .unwrap()
        .remove(0)
}
