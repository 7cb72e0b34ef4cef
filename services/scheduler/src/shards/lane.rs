//! One lane: the memory of its shards, and one flush after the other.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use servo_bus::Listeners;
use servo_model::RunId;
use servo_store::{LedgerReader, LoopStore, Store};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::admission::{DispatcherStream, DispatcherStreamId, DispatcherStreams};
use super::clock::DatabaseClock;
use super::command::{Command, Submission, SubmitError, UnplannedRun};
use super::in_flight::{InFlight, InstanceAttempts};
use super::renewals::Renewals;
use super::run_capacity::RunCapacity;
use super::run_limits::WaitingRuns;
use super::run_watchers::RunWatchers;
use super::shard::Shard;
use super::timers::Timers;
use super::{LaneContext, Unreadable};
use crate::core::Limits;
use crate::metrics::Metrics;
use crate::plans::Plans;

/// How soon timers ask for the database's time after a flush that failed forgot it.
const CLOCK_PAUSE: Duration = Duration::from_millis(100);
/// In a crowd, from the beginning of one flush to that of the next. One that takes longer is followed at once.
const FLUSH_SPACING: Duration = Duration::from_millis(10);
/// What one flush carries at most.
const ASKS_PER_FLUSH_MAX: usize = 1_024;
/// With so many tasks of new plans it is closed: all of them are rows of one statement, which has but seconds.
const PLANNED_TASKS_PER_FLUSH: usize = 50_000;

#[derive(Debug)]
pub(super) enum Message {
    Submission(Submission),
    /// The keeper acquired a shard.
    Take(Box<servo_store::Lease>),
    /// The keeper renewed a lease.
    Renewed(Box<servo_store::Lease>),
    /// The keeper lost a shard, or gives it away.
    Drop(i16),
    /// Somebody may have appended to it.
    Look(i16),
    /// There may be places for runs that wait.
    RunCapacity,
    OpenStream(DispatcherStream),
    CloseStream(DispatcherStreamId),
    #[cfg(test)]
    Panic,
}

/// What the lanes of an instance have in common. Cheap to clone.
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
    pub(super) shards: HashMap<i16, Shard>,
    pub(super) timers: Timers,
    pub(super) streams: DispatcherStreams,
    /// Unknown until the first answer of the database.
    pub(super) clock: Option<DatabaseClock>,
    pub(super) unreadable: Unreadable,
    pub(super) run_watchers: RunWatchers,
    /// The way to whoever has runs planned.
    pub(super) unplanned: mpsc::UnboundedSender<UnplannedRun>,
    pub(super) metrics: Metrics,
    pub(super) listeners: Option<Listeners>,
    pub(super) limits: watch::Receiver<Limits>,
    pub(super) waiting: WaitingRuns,
    pub(super) run_capacity: RunCapacity,
    pub(super) renewals: Renewals,
    pub(super) in_flight: InFlight,
    /// When the last flush began.
    pub(super) flushed: Option<Instant>,
}

impl Lane {
    pub(super) fn new(
        store: Store,
        LaneContext {
            plans,
            unplanned,
            metrics,
            listeners,
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
            unplanned,
            metrics,
            listeners,
            limits,
            waiting: WaitingRuns::default(),
            run_capacity,
            renewals,
            in_flight: InFlight::among(instance_attempts),
            flushed: None,
        }
    }

    /// Ends when the last handle is dropped. After a panic it goes on with nothing but its streams: the keeper renews the
    /// leases, and with each the shard is loaded anew.
    pub(super) async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Message>) {
        while AssertUnwindSafe(self.serve(&mut inbox))
            .catch_unwind()
            .await
            .is_err()
        {
            tracing::error!("a lane panicked; its shards are loaded anew");
            self.metrics.lane_panics.inc();
            self.drop_everything();
        }
    }

    async fn serve(&mut self, inbox: &mut mpsc::UnboundedReceiver<Message>) {
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

    pub(super) async fn handle(
        &mut self,
        message: Message,
        inbox: &mut mpsc::UnboundedReceiver<Message>,
    ) {
        // A turn, not a delay: callers who were just answered and have more can still join.
        tokio::task::yield_now().await;
        let (mut submissions, mut latency_bound) = (Vec::new(), false);
        let mut message = Some(message);
        while let Some(current) = message {
            match current {
                Message::Submission(submission) => {
                    latency_bound |= submission
                        .commands
                        .iter()
                        .any(|command| self.in_flight.is_latency_bound(command.run_id()));
                    submissions.push(submission);
                }
                other => {
                    // What was asked before comes before.
                    self.flush(std::mem::take(&mut submissions)).await;
                    self.handle_control(other).await;
                }
            }
            message = match is_full(&submissions) {
                true => None,
                false => {
                    self.next_or_wait(!submissions.is_empty() && !latency_bound, inbox)
                        .await
                }
            };
        }
        self.flush(submissions).await;
    }

    /// What else has come. In a crowd others are about to, and a flush of several costs hardly more than a flush of one: who
    /// can wait does so for a moment.
    async fn next_or_wait(
        &self,
        can_wait: bool,
        inbox: &mut mpsc::UnboundedReceiver<Message>,
    ) -> Option<Message> {
        let flushed = self
            .flushed
            .filter(|_| can_wait && self.in_flight.is_busy());
        match (inbox.try_recv(), flushed) {
            (Ok(message), _) => Some(message),
            (Err(_), None) => None,
            (Err(_), Some(flushed)) => {
                tokio::time::timeout_at(flushed + FLUSH_SPACING, inbox.recv())
                    .await
                    .ok()?
            }
        }
    }

    async fn handle_control(&mut self, message: Message) {
        match message {
            Message::Submission(_) => {}
            Message::Take(lease) => self.take(*lease).await,
            Message::Renewed(lease) => self.renew(*lease).await,
            Message::Drop(shard) => self.drop_shard(shard),
            Message::Look(shard) => self.look(shard).await,
            Message::RunCapacity => self.start_waiting_runs().await,
            Message::OpenStream(stream) => self.open_stream(stream),
            Message::CloseStream(stream) => self.streams.close(stream),
            #[cfg(test)]
            Message::Panic => panic!("as the test asks"),
        }
    }

    /// A shard that could not be loaded, or had to be dropped, is tried again as long as its lease is held.
    async fn renew(&mut self, lease: servo_store::Lease) {
        match self.shards.get_mut(&lease.shard()) {
            Some(shard) if shard.lease.epoch() == lease.epoch() => shard.lease = lease,
            Some(_) => {}
            None => self.take(lease).await,
        }
    }

    pub(super) fn drop_shard(&mut self, shard: i16) {
        // Also of a shard that is not in memory: what could not be loaded to its end may have noted some already.
        self.waiting.drop_shard(shard);
        self.in_flight.drop_shard(shard);
        if self.shards.remove(&shard).is_some() {
            self.streams.gone(shard);
        }
    }

    fn drop_everything(&mut self) {
        let shards: Vec<i16> = self.shards.keys().copied().collect();
        shards.into_iter().for_each(|shard| self.drop_shard(shard));
        self.streams.discard_updates();
        (self.timers, self.waiting, self.clock) = (Timers::default(), WaitingRuns::default(), None);
    }

    /// What is not sure is read again when it is next needed.
    pub(super) fn evict_runs(&mut self, runs: impl IntoIterator<Item = RunId>) {
        for run in runs {
            self.in_flight.forget(run);
            if let Some(shard) = self.shards.get_mut(&run.shard()) {
                shard.runs.remove(&run);
            }
        }
    }

    /// Without a clock it is not known what is due, so it is asked for soon.
    fn next_due(&self) -> Option<Instant> {
        let next = self.timers.next()?;
        Some(self.clock.map_or_else(
            || Instant::now() + CLOCK_PAUSE,
            |clock| clock.instant(next).into(),
        ))
    }
}

fn is_full(submissions: &[Submission]) -> bool {
    let commands = || {
        submissions
            .iter()
            .flat_map(|submission| &submission.commands)
    };
    commands().count() >= ASKS_PER_FLUSH_MAX
        || commands().map(Command::planned_tasks).sum::<usize>() >= PLANNED_TASKS_PER_FLUSH
}

/// Answers everybody that it did not happen.
pub(super) fn refuse(submissions: Vec<Submission>, why: &SubmitError) {
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

    use super::super::command::PlanOutcome;
    use super::super::tests::{known_plan, plan, run_id};
    use super::*;

    #[test]
    fn a_flush_is_closed_by_the_tasks_of_its_plans_too() {
        let large = plan(&vec![&[] as &[u32]; 20_000]);
        let new = known_plan(&Plans::default(), &large);
        let submission = |n| {
            let plan = PlanOutcome {
                tenant: "acme".to_owned(),
                run_id: run_id(n),
                result: Ok(new.clone()),
            };
            Submission {
                shard: i16::from(n),
                commands: vec![Command::Plan(Arc::new(plan))],
                reply: oneshot::channel().0,
            }
        };
        assert!(!is_full(&[submission(1), submission(2)]));
        assert!(is_full(&[submission(1), submission(2), submission(3)]));
    }
}
