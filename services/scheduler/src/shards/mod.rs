//! The shards that this instance holds: their memory, and the flushes that store their events.
//!
//! A [`Lane`](lane::Lane) is a Tokio task that owns the memory of some shards and writes one flush
//! at a time. Callers reach it through [`Shards::submit`] with a [`Submission`]: the [`Command`]s
//! of one caller for one shard. While a flush is in progress, the next submissions gather in the
//! lane's inbox and form the next flush. A command passes through these steps:
//!
//! 1. **load**: runs that are not in memory are restored from their rows ([`load_shard`],
//!    [`restore_runs`]); lookups that the fold needs are made for all commands at once (promoted
//!    versions, quarantined materializations, counts of runs under the lock of a tenant's limits).
//! 2. **fold**: the pure [`core`](crate::core) applies the event to the run in memory and returns a
//!    verdict and the changes. An event that changes nothing is not appended.
//! 3. **store**: one statement appends the events, moves the watermarks and writes the changed
//!    rows, guarded by the fence on the shards' leases ([`flush`], ADR 12).
//! 4. **publish**: dispatchers receive updates ([`dispatcher_streams`]), watchers are notified,
//!    timers are armed, and ended runs are evicted. Then the callers get their answers.
//!
//! Memory is a cache of the rows: when a flush fails, the runs it touched are evicted or their
//! shard is loaded again ([`recover`]). Events that other services appended are folded before the
//! lane's own ([`catch_up`]), because the fence refuses a flush of a shard with unfolded events.
//!
//! There are two lanes, so that one flush computes while the other waits for the disk. Neighbouring
//! shards share a lane and an instance acquires neighbours. With two instances each therefore uses
//! one lane: its other lane is idle, and its flushes are as large as a single instance's.

mod catch_up;
mod claim;
mod clock;
mod command;
mod dispatcher_streams;
mod flush;
mod good_versions;
mod in_flight;
mod lane;
mod load_shard;
mod message_parts;
mod new_run;
mod outbox;
mod rebuild;
mod recover;
mod renewals;
mod resolutions;
mod restore_runs;
mod run_capacity;
mod run_limits;
mod run_watchers;
mod set_aside;
mod shard;
mod shard_owner;
mod stored_event;
#[cfg(test)]
pub(crate) mod tests;
mod timers;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use servo_bus::BusDoorbell;
use servo_model::{RunId, ShardId, Stream};
use servo_store::Store;
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use command::{
    Applied, Claim, Command, CommandResult, Enqueued, NewPlan, NewRun, PlanFailure, PlanResult,
    RequestedPlan, RunEvent, Submission, SubmitError, UnplannedRun, event_id,
};
pub(crate) use dispatcher_streams::{DispatcherStream, DispatcherStreamId};
pub use rebuild::{RebuildError, Rebuilt, rebuild};
pub(crate) use restore_runs::restore;
pub(crate) use shard_owner::LeaseLoop;

use lane::{Lane, Message, Shared};
use renewals::Renewals;
use run_watchers::RunWatchers;

use crate::core::Limits;
use crate::metrics::Metrics;
use crate::plans::Plans;

/// Messages that wait for a lane. Callers beyond it wait; messages that are repeated anyway are
/// dropped, see [`Shards::try_send`].
const INBOX_MAX: usize = 16_384;
/// Runs that wait for the plan requester. The lane keeps those beyond it and offers them again.
pub(crate) const UNPLANNED_QUEUED_MAX: usize = 16_384;

/// One flush computes while the other waits for the disk.
const LANES: usize = 2;

fn lane_of(shard: ShardId) -> usize {
    let all = usize::from(Stream::Execution.shard_count().unsigned_abs());
    shard.index() * LANES / all
}

/// The handle of the lanes. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Shards {
    lanes: Arc<[mpsc::Sender<Message>]>,
    unreadable: Unreadable,
    renewals: Renewals,
    run_watchers: RunWatchers,
    metrics: Metrics,
}

/// Shards that contain an event or a state which this version does not know. They are released for
/// a newer version and not acquired again, because skipping the event would lose it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unreadable(Arc<Mutex<BTreeSet<ShardId>>>);

impl Unreadable {
    fn add(&self, shard: ShardId) {
        self.lock().insert(shard);
    }

    fn contains(&self, shard: ShardId) -> bool {
        self.lock().contains(&shard)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<ShardId>> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The dependencies of the lanes on the rest of the instance.
#[derive(Debug, Clone)]
pub(crate) struct LaneContext {
    pub(crate) plans: Plans,
    /// Sends runs without a plan to the plan requester.
    pub(crate) plan_requests: mpsc::Sender<UnplannedRun>,
    pub(crate) metrics: Metrics,
    /// Wakes the consumers of the bus; `None` during a rebuild, which publishes nothing again.
    pub(crate) bus_doorbell: Option<BusDoorbell>,
    /// The limits on runs, as the quota service sends them.
    pub(crate) limits: watch::Receiver<Limits>,
}

impl Shards {
    /// Starts the lanes, without shards; the lease keeper adds them.
    pub(crate) fn start(store: &Store, context: LaneContext) -> Shards {
        let shared = Shared::default();
        let lane = |_| {
            let (inbox, messages) = mpsc::channel(INBOX_MAX);
            let lane = Lane::new(store.clone(), context.clone(), shared.clone());
            servo_actor::spawn("lane", lane.run(messages));
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

    /// Whether the shard contains an event or a state that this version does not know.
    pub(crate) fn is_unreadable(&self, shard: ShardId) -> bool {
        self.unreadable.contains(shard)
    }

    /// Subscribes to everything that this instance folds of the run.
    pub(crate) fn watch_run(&self, run: RunId) -> tokio::sync::watch::Receiver<()> {
        self.run_watchers.subscribe(run)
    }

    /// Folds and stores the commands, all of which belong to `shard`, and returns their results in
    /// order.
    pub(crate) async fn submit(
        &self,
        shard: ShardId,
        commands: Vec<Command>,
    ) -> Result<Vec<Applied>, SubmitError> {
        let (reply, answer) = oneshot::channel();
        let submission = Submission {
            shard,
            commands,
            reply,
        };
        let sent = self.lane(shard).send(Message::Submission(submission)).await;
        sent.map_err(|_| SubmitError::Stopped)?;
        answer.await.map_err(|_| SubmitError::Stopped)?
    }

    /// Opens or replaces a dispatcher's stream on every lane.
    pub(crate) async fn open_stream(&self, stream: &DispatcherStream) -> Result<(), SubmitError> {
        for lane in self.lanes.iter() {
            let sent = lane.send(Message::OpenStream(stream.clone())).await;
            sent.map_err(|_| SubmitError::Stopped)?;
        }
        Ok(())
    }

    /// Checks whether waiting runs may start, after limits have changed. A lane with a full inbox
    /// checks again soon without it.
    pub(crate) fn recheck_capacity(&self) {
        for lane in self.lanes.iter() {
            let _ = lane.try_send(Message::CapacityChanged);
        }
    }

    pub(crate) async fn close_stream(&self, stream: DispatcherStreamId) {
        for lane in self.lanes.iter() {
            let _ = lane.send(Message::CloseStream(stream)).await;
        }
    }

    fn lane(&self, shard: ShardId) -> &mpsc::Sender<Message> {
        &self.lanes[lane_of(shard)]
    }

    /// Sends a message about a lease without waiting, because the lease keeper must not wait for a
    /// lane. A lost one is repaired: the next renewal loads a shard that the lane does not have,
    /// and the fence stops a lane that does not know that its lease is gone.
    fn try_send(&self, shard: ShardId, message: Message) {
        let _ = self.lane(shard).try_send(message);
    }
}
