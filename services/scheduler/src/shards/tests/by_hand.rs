//! A lane driven by hand, so that nothing depends on who is quicker.

use std::time::Duration;

use servo_model::{RunId, Stream};
use servo_proto::v1;
use servo_store::{Lease, LeaseTtl, Leases, Store};
use tokio::sync::{mpsc, oneshot, watch};

use super::{claim, folded, gate, known_plan, run_with};
use crate::core::Limits;
use crate::metrics::Metrics;
use crate::shards::lane::{Lane, Shared};
use crate::shards::work::Work;
use crate::shards::{Around, Ask, Plans};

/// A lane without a loop: it does what it is told, when it is told.
pub(super) struct ByHand {
    pub(super) lane: Lane,
    plans: Plans,
    _told: mpsc::UnboundedReceiver<v1::AdmitResponse>,
    _board: watch::Sender<Limits>,
}

impl ByHand {
    pub(super) async fn holding(store: &Store, lease: Lease) -> ByHand {
        let (board, limits) = watch::channel(Limits::none());
        let (unplanned, _) = mpsc::unbounded_channel();
        let (plans, metrics) = (Plans::default(), Metrics::default());
        let around = Around {
            plans: plans.clone(),
            unplanned,
            metrics,
            listeners: None,
            limits,
        };
        let mut lane = Lane::new(store.clone(), around, Shared::default());
        let (gate, told) = gate(1);
        lane.open_gate(gate);
        lane.take_or_fail(lease).await.unwrap();
        ByHand {
            lane,
            plans,
            _told: told,
            _board: board,
        }
    }

    /// All of it in one flush; all of it must be folded.
    pub(super) async fn fold(&mut self, asks: Vec<Ask>) {
        let (reply, answer) = oneshot::channel();
        self.lane
            .flush(vec![Work {
                shard: asks[0].run_id().shard(),
                asks,
                reply,
            }])
            .await;
        answer.await.unwrap().unwrap().iter().for_each(folded);
    }

    /// A run of `plan`, all of whose tasks are claimed.
    pub(super) async fn claimed(&mut self, plan: &v1::Plan, id: RunId) {
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
