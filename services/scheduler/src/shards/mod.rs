//! The shards this instance holds: appended to, folded and stored in one statement per flush.
//!
//! A [`Lane`](lane::Lane) is a task that owns the memory of its shards and one flush at a time; while a flush is under
//! way the next gathers. Two lanes keep Postgres busy while one of them waits for its disk. Neighbours share a lane and
//! an instance holds neighbours, so two instances have two lanes between them and flush as much at once as one alone
//! would. Memory is a cache of rows: whenever a flush fails, what it touched is forgotten and read again.

mod admission;
mod claim;
mod clock;
mod command;
mod flush;
mod good_versions;
mod in_flight;
mod lane;
mod lease_keeper;
mod load;
mod message_parts;
mod new_run;
mod outbox;
mod rebuild;
mod renewals;
mod resolutions;
mod rows;
mod run_capacity;
mod run_limits;
mod run_watchers;
mod set_aside;
mod shard;
mod statement;
mod tail;
#[cfg(test)]
mod tests;
mod timers;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use servo_bus::Listeners;
use servo_model::{RunId, Stream};
use servo_store::Store;
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use admission::{DispatcherStream, DispatcherStreamId};
pub(crate) use command::{
    Applied, Claim, Command, CommandOutcome, Enqueued, NewPlan, NewRun, PlanFailure, PlanOutcome,
    RequestedPlan, RunEvent, RunView, Submission, SubmitError, UnplannedRun, event_id,
};
pub(crate) use lease_keeper::LeaseKeeper;
pub(crate) use load::restore;
pub use rebuild::{RebuildError, Rebuilt, rebuild};
pub(crate) use run_limits::all_shards;

use lane::{Lane, Message, Shared};
use renewals::Renewals;
use run_watchers::RunWatchers;

use crate::core::Limits;
use crate::metrics::Metrics;
use crate::plans::Plans;

/// One flush works while the other waits for the disk.
const LANES: usize = 2;

fn lane_of(shard: i16) -> usize {
    let all = usize::from(Stream::Execution.shards().unsigned_abs());
    usize::from(shard.unsigned_abs()) * LANES / all
}

/// The way to the lanes. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Shards {
    lanes: Arc<[mpsc::UnboundedSender<Message>]>,
    unreadable: Unreadable,
    renewals: Renewals,
    run_watchers: RunWatchers,
    metrics: Metrics,
}

/// Shards that hold an event which this version does not know. They are given back for a newer one to take, and not
/// taken again: to pass the event over would lose it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unreadable(Arc<Mutex<BTreeSet<i16>>>);

impl Unreadable {
    fn add(&self, shard: i16) {
        self.lock().insert(shard);
    }

    fn contains(&self, shard: i16) -> bool {
        self.lock().contains(&shard)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<i16>> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// What the lanes share with the rest of the instance.
#[derive(Debug, Clone)]
pub(crate) struct LaneContext {
    pub(crate) plans: Plans,
    /// The way to whoever has runs planned.
    pub(crate) unplanned: mpsc::UnboundedSender<UnplannedRun>,
    pub(crate) metrics: Metrics,
    /// Those who follow runs from afar; a rebuild tells them nothing anew.
    pub(crate) listeners: Option<Listeners>,
    /// How many runs tenants may have.
    pub(crate) limits: watch::Receiver<Limits>,
}

impl Shards {
    /// Starts the lanes. They hold nothing until the keeper gives them shards.
    pub(crate) fn start(store: &Store, context: LaneContext) -> Shards {
        let shared = Shared::default();
        let lane = |_| {
            let (inbox, messages) = mpsc::unbounded_channel();
            let lane = Lane::new(store.clone(), context.clone(), shared.clone());
            tokio::spawn(lane.run(messages));
            inbox
        };
        let lanes: Arc<[_]> = (0..LANES).map(lane).collect();
        let Shared {
            unreadable,
            run_watchers,
            run_capacity,
            renewals,
            ..
        } = shared;
        run_capacity.start(store, &lanes);
        Shards {
            lanes,
            unreadable,
            renewals,
            run_watchers,
            metrics: context.metrics,
        }
    }

    /// Whether the shard holds an event that this version does not know.
    pub(crate) fn is_unreadable(&self, shard: i16) -> bool {
        self.unreadable.contains(shard)
    }

    /// Rings whenever something of the run was folded here.
    pub(crate) fn listen(&self, run: RunId) -> tokio::sync::watch::Receiver<()> {
        self.run_watchers.listen(run)
    }

    /// Appends and folds, and answers for each ask in its order once that is stored. All of them belong to `shard`.
    pub(crate) async fn submit(
        &self,
        shard: i16,
        commands: Vec<Command>,
    ) -> Result<Vec<Applied>, SubmitError> {
        let (reply, answer) = oneshot::channel();
        self.send(
            shard,
            Message::Submission(Submission {
                shard,
                commands,
                reply,
            }),
        )?;
        answer.await.map_err(|_| SubmitError::Stopped)?
    }

    /// Opens, or changes, a dispatcher's gate on every lane.
    pub(crate) fn open_stream(&self, stream: &DispatcherStream) -> Result<(), SubmitError> {
        let open =
            |lane: &mpsc::UnboundedSender<Message>| lane.send(Message::OpenStream(stream.clone()));
        self.lanes
            .iter()
            .try_for_each(open)
            .map_err(|_| SubmitError::Stopped)
    }

    /// Limits have changed: runs that wait may have a place now.
    pub(crate) fn recheck_capacity(&self) {
        for lane in self.lanes.iter() {
            let _ = lane.send(Message::RunCapacity);
        }
    }

    pub(crate) fn close_stream(&self, stream: DispatcherStreamId) {
        for lane in self.lanes.iter() {
            let _ = lane.send(Message::CloseStream(stream));
        }
    }

    fn send(&self, shard: i16, message: Message) -> Result<(), SubmitError> {
        if !(0..Stream::Execution.shards()).contains(&shard) {
            return Err(SubmitError::NotHeld);
        }
        self.lanes[lane_of(shard)]
            .send(message)
            .map_err(|_| SubmitError::Stopped)
    }
}
