//! One lane: the memory of its shards and its inbox. See the [module](super) for its cycle.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use servo_actor::PanicBudget;
use servo_bus::BusDoorbell;
use servo_model::{RunId, ShardId};
use servo_store::{LedgerReader, LoopStore, Store};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::clock::DatabaseClock;
use super::command::{Command, Submission, SubmitError, UnplannedRun};
use super::dispatcher_streams::{DispatcherStream, DispatcherStreamId, DispatcherStreams};
use super::in_flight::{InFlight, InstanceAttempts};
use super::renewals::Renewals;
use super::run_capacity::RunCapacity;
use super::run_limits::UnplannedRuns;
use super::run_watchers::RunWatchers;
use super::shard::Shard;
use super::timers::Timers;
use super::{LaneContext, Unreadable};
use crate::core::Limits;
use crate::metrics::Metrics;
use crate::plans::Plans;

/// How soon the timers read the database's time again after a failed flush discarded it.
const CLOCK_RETRY: Duration = Duration::from_millis(100);
/// On a busy instance, the time from the start of one flush to the start of the next. A flush that
/// takes longer is followed at once.
const FLUSH_INTERVAL: Duration = Duration::from_millis(10);
/// From this many commands on, a flush is complete.
const COMMANDS_PER_FLUSH: usize = 1_024;
/// How many tasks of new plans complete a flush, because all of them are rows of one statement,
/// which has a timeout of seconds.
const PLANNED_TASKS_PER_FLUSH: usize = 50_000;

#[derive(Debug)]
pub(super) enum Message {
    Submission(Submission),
    /// The lease keeper acquired a shard.
    Acquired(Box<servo_store::Lease>),
    /// The lease keeper renewed a lease.
    Renewed(Box<servo_store::Lease>),
    /// The lease keeper lost or releases a shard.
    Dropped(ShardId),
    /// Another service may have appended to the shard.
    CatchUp(ShardId),
    /// Waiting runs may be able to start.
    CapacityChanged,
    OpenStream(DispatcherStream),
    CloseStream(DispatcherStreamId),
    #[cfg(test)]
    Panic,
}

/// The state that the lanes of an instance share. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Shared {
    pub(super) unreadable: Unreadable,
    pub(super) run_watchers: RunWatchers,
    pub(super) run_capacity: RunCapacity,
    pub(super) renewals: Renewals,
    pub(super) instance_attempts: InstanceAttempts,
}

pub(super) struct Lane {
    pub(super) loops: LoopStore,
    pub(super) reader: LedgerReader,
    pub(super) plans: Plans,
    pub(super) shards: HashMap<ShardId, Shard>,
    pub(super) timers: Timers,
    pub(super) streams: DispatcherStreams,
    /// Unknown until the database has answered, and after a failed flush.
    pub(super) clock: Option<DatabaseClock>,
    pub(super) unreadable: Unreadable,
    pub(super) run_watchers: RunWatchers,
    /// Sends runs without a plan to the plan requester.
    pub(super) plan_requests: mpsc::Sender<UnplannedRun>,
    pub(super) metrics: Metrics,
    pub(super) bus_doorbell: Option<BusDoorbell>,
    pub(super) limits: watch::Receiver<Limits>,
    pub(super) unplanned_runs: UnplannedRuns,
    pub(super) run_capacity: RunCapacity,
    pub(super) renewals: Renewals,
    pub(super) in_flight: InFlight,
    /// When the last flush began.
    pub(super) last_flush: Option<Instant>,
}

impl Lane {
    pub(super) fn new(
        store: Store,
        LaneContext {
            plans,
            plan_requests,
            metrics,
            bus_doorbell,
            limits,
        }: LaneContext,
        Shared {
            unreadable,
            run_watchers,
            run_capacity,
            renewals,
            instance_attempts,
        }: Shared,
    ) -> Lane {
        Lane {
            loops: store.loops().clone(),
            reader: store.reader(),
            plans,
            shards: HashMap::new(),
            timers: Timers::default(),
            streams: DispatcherStreams::default(),
            clock: None,
            unreadable,
            run_watchers,
            plan_requests,
            metrics,
            bus_doorbell,
            limits,
            unplanned_runs: UnplannedRuns::default(),
            run_capacity,
            renewals,
            in_flight: InFlight::new(instance_attempts),
            last_flush: None,
        }
    }

    /// Runs until the last handle is dropped. After a panic the lane keeps only its dispatcher
    /// streams; each shard is loaded again when the lease keeper renews its lease.
    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Message>) {
        let mut panics = PanicBudget::new("lane");
        while AssertUnwindSafe(self.serve(&mut inbox))
            .catch_unwind()
            .await
            .is_err()
        {
            tracing::error!("a lane panicked; reloading its shards");
            self.metrics.lane_panics.inc();
            panics.spend();
            self.drop_everything();
        }
    }

    async fn serve(&mut self, inbox: &mut mpsc::Receiver<Message>) {
        loop {
            let due = self.next_due();
            tokio::select! {
                message = inbox.recv() => match message {
                    Some(message) => self.handle(message, inbox).await,
                    None => return,
                },
                () = sleep_until(due) => self.fire_timers().await,
            }
        }
    }

    pub(super) async fn handle(&mut self, message: Message, inbox: &mut mpsc::Receiver<Message>) {
        // Yields once without a delay, so that callers who were just answered can join this flush.
        tokio::task::yield_now().await;
        let mut gathered = GatheredSubmissions::default();
        let mut message = Some(message);
        while let Some(current) = message {
            match current {
                Message::Submission(submission) => {
                    gathered.add(submission, &self.in_flight);
                }
                other => {
                    // Earlier submissions are flushed first.
                    self.flush(gathered.take()).await;
                    self.handle_control(other).await;
                }
            }
            message = if gathered.is_full() {
                None
            } else {
                self.next_or_wait(gathered.can_wait(), inbox).await
            };
        }
        self.flush(gathered.submissions).await;
    }

    /// Returns the next queued message; `None` to flush now. A busy instance waits for a message
    /// until [`FLUSH_INTERVAL`] after the start of the last flush, because a larger batch costs
    /// Postgres almost the same as a single event (ADR 14).
    async fn next_or_wait(
        &self,
        can_wait: bool,
        inbox: &mut mpsc::Receiver<Message>,
    ) -> Option<Message> {
        let last_flush = self
            .last_flush
            .filter(|_| can_wait && self.in_flight.is_busy());
        match (inbox.try_recv(), last_flush) {
            (Ok(message), _) => Some(message),
            (Err(_), None) => None,
            (Err(_), Some(last_flush)) => {
                tokio::time::timeout_at(last_flush + FLUSH_INTERVAL, inbox.recv())
                    .await
                    .ok()?
            }
        }
    }

    async fn handle_control(&mut self, message: Message) {
        match message {
            Message::Submission(_) => {}
            Message::Acquired(lease) => self.load_shard(*lease).await,
            Message::Renewed(lease) => self.renew(*lease).await,
            Message::Dropped(shard) => self.drop_shard(shard),
            Message::CatchUp(shard) => self.catch_up_or_reload(shard).await,
            Message::CapacityChanged => self.start_waiting_runs().await,
            Message::OpenStream(stream) => self.open_stream(stream),
            Message::CloseStream(stream) => self.streams.close(stream),
            #[cfg(test)]
            Message::Panic => panic!("requested by a test"),
        }
    }

    /// Updates the lease of a shard. Loads a shard that could not be loaded or was dropped, or that
    /// was acquired again: another instance may have held it in between.
    async fn renew(&mut self, lease: servo_store::Lease) {
        match self.shards.get_mut(&lease.shard()) {
            Some(shard) if shard.lease.epoch() == lease.epoch() => shard.lease = lease,
            _ => self.load_shard(lease).await,
        }
    }

    pub(super) fn drop_shard(&mut self, shard: ShardId) {
        // Also for a shard that is not in memory, because a failed load may have added entries.
        self.unplanned_runs.remove_shard(shard);
        self.in_flight.remove_shard(shard);
        if self.shards.remove(&shard).is_some() {
            self.streams.send_gone(shard);
        }
    }

    fn drop_everything(&mut self) {
        let shards: Vec<ShardId> = self.shards.keys().copied().collect();
        shards.into_iter().for_each(|shard| self.drop_shard(shard));
        self.streams.discard_updates();
        self.timers = Timers::default();
        self.unplanned_runs = UnplannedRuns::default();
        self.in_flight.clear();
        self.clock = None;
    }

    /// Evicts these runs from memory. The caller loads them again before the lane does anything
    /// else, because timers and snapshots look only at runs in memory.
    pub(super) fn evict_runs(&mut self, runs: impl IntoIterator<Item = RunId>) {
        for run in runs {
            self.in_flight.remove(run);
            if let Some(shard) = self.shards.get_mut(&run.shard()) {
                shard.runs.remove(&run);
            }
        }
    }

    /// Evicts those of the runs that have ended. An ended run is loaded only for one flush.
    pub(super) fn evict_ended_runs(&mut self, runs: impl IntoIterator<Item = RunId>) {
        for run in runs {
            let held = self.shards.get_mut(&run.shard());
            if let Some(Entry::Occupied(loaded)) = held.map(|held| held.runs.entry(run))
                && loaded.get().ended_at.is_some()
            {
                loaded.remove();
                self.in_flight.remove(run);
            }
        }
    }

    /// When the next timer is due; soon when the database's time must be read first.
    fn next_due(&self) -> Option<Instant> {
        let next = self.timers.next()?;
        Some(self.clock.map_or_else(
            || Instant::now() + CLOCK_RETRY,
            |clock| clock.instant(next).into(),
        ))
    }
}

/// The submissions of the next flush.
#[derive(Debug, Default)]
struct GatheredSubmissions {
    submissions: Vec<Submission>,
    commands: usize,
    /// The tasks of new plans.
    planned_tasks: usize,
    /// One of the commands belongs to a latency-bound run, so the flush does not wait.
    latency_bound: bool,
}

impl GatheredSubmissions {
    fn add(&mut self, submission: Submission, in_flight: &InFlight) {
        let commands = &submission.commands;
        self.commands += commands.len();
        self.planned_tasks += commands.iter().map(Command::planned_tasks).sum::<usize>();
        self.latency_bound |= commands
            .iter()
            .any(|command| in_flight.is_latency_bound(command.run_id()));
        self.submissions.push(submission);
    }

    fn is_full(&self) -> bool {
        self.commands >= COMMANDS_PER_FLUSH || self.planned_tasks >= PLANNED_TASKS_PER_FLUSH
    }

    /// Returns the submissions and begins the next flush.
    fn take(&mut self) -> Vec<Submission> {
        std::mem::take(self).submissions
    }

    /// Whether the flush may wait for more submissions.
    fn can_wait(&self) -> bool {
        !self.submissions.is_empty() && !self.latency_bound
    }
}

/// Replies to all callers that their submission was not stored.
pub(super) fn reject(submissions: Vec<Submission>, why: &SubmitError) {
    for submission in submissions {
        let _ = submission.reply.send(Err(why.clone()));
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => {
            tokio::time::sleep_until(due.max(Instant::now() + Duration::from_millis(1))).await
        }
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::oneshot;

    use super::super::command::{NewPlan, PlanResult};
    use super::super::tests::{known_plan, plan, run_id};
    use super::*;

    fn submission(n: u8, plan: &NewPlan) -> Submission {
        let plan = PlanResult {
            tenant: "acme".parse().unwrap(),
            run_id: run_id(n),
            result: Ok(plan.clone()),
        };
        Submission {
            shard: run_id(n).shard(),
            commands: vec![Command::Plan(Arc::new(plan))],
            reply: oneshot::channel().0,
        }
    }

    #[test]
    fn a_flush_is_complete_with_enough_tasks_of_new_plans() {
        let large = plan(&vec![&[] as &[u32]; 20_000]);
        let new = known_plan(&Plans::default(), &large);
        let mut gathered = GatheredSubmissions::default();
        for n in [1, 2] {
            gathered.add(submission(n, &new), &InFlight::default());
            assert!(!gathered.is_full());
        }
        gathered.add(submission(3, &new), &InFlight::default());
        assert!(gathered.is_full());
    }

    #[test]
    fn a_flushed_submission_does_not_keep_later_ones_from_waiting() {
        let new = known_plan(&Plans::default(), &plan(&[&[]]));
        let mut in_flight = InFlight::default();
        in_flight.set(run_id(2), 2);
        let mut gathered = GatheredSubmissions::default();
        gathered.add(submission(1, &new), &in_flight);
        assert!(!gathered.can_wait(), "its run is latency-bound");
        assert_eq!(gathered.take().len(), 1);
        gathered.add(submission(2, &new), &in_flight);
        assert!(gathered.can_wait());
    }
}
