//! WatchRun: folds a run's events as they are recorded and sends what they change.
//!
//! The watcher folds the events itself, so it needs no task rows and can begin at any position. It
//! looks for new events when this instance or the holder of the run's shard reports a change, and
//! periodically in case a report was lost.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::Duration;

use futures::Stream;
use servo_mesh::{Error, Reason};
use servo_model::{Position, RunId, TaskRef, TenantId, Timestamp};
use servo_proto::v1 as pb;
use servo_store::TenantTx;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::Scheduler;
use super::support::remote_watch::watch_remote;
use super::support::{errors, pages, parse};
use crate::core::RunView;
use crate::reads::replay::{Replay, ReplayedRun};
use crate::reads::{run_history, runs};
use crate::store::runs::RunRecord;
use crate::store::shards;
use crate::wire::{self, TaskExtras};

pub(super) type Watched = Pin<Box<dyn Stream<Item = Result<pb::WatchRunResponse, Status>> + Send>>;

/// How many tasks, and how many events, a message contains.
const ENTRIES_PER_MESSAGE_MAX: usize = 256;
/// How many messages are queued for a slow reader. Later changes are combined, and states in
/// between are left out.
const QUEUED_MESSAGES_MAX: usize = 4;
/// Changes within this time are sent together.
const BATCH_TIME: Duration = Duration::from_millis(50);
/// How often it looks without a notification.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often an idle watch sends a message.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(super) async fn watch_run(
    scheduler: &Scheduler,
    request: pb::WatchRunRequest,
) -> Result<Watched, Error> {
    let run_id = parse::run_id(&request.run_id)?;
    let mut watcher = Watcher::begin(scheduler.clone(), request, run_id).await?;
    let changes = [
        scheduler.shards.watch_run(run_id),
        watch_remote(scheduler.router.clone(), run_id),
    ];
    let (outbox, messages) = mpsc::channel(QUEUED_MESSAGES_MAX);
    servo_actor::spawn_task("run watcher", async move {
        if let Err(error) = watcher.run(changes, &outbox).await {
            let _ = outbox.send(Err(error.into())).await;
        }
    });
    Ok(Box::pin(ReceiverStream::new(messages)))
}

struct Watcher {
    scheduler: Scheduler,
    tenant: TenantId,
    request: pb::WatchRunRequest,
    record: RunRecord,
    replay: Replay,
    /// The position in the shard, and the start of Postgres: after a crash other events may get the
    /// same positions.
    position: Position,
    started_at: Timestamp,
    /// The position up to which the caller knows the events.
    known_until: Position,
    /// The last token that was sent, or the caller's.
    token: String,
}

/// The changes since the last look.
#[derive(Default)]
struct WatchUpdate {
    run: bool,
    task_refs: BTreeSet<TaskRef>,
    events: Vec<pb::EventRecord>,
}

impl Watcher {
    async fn begin(
        scheduler: Scheduler,
        request: pb::WatchRunRequest,
        run_id: RunId,
    ) -> Result<Watcher, Error> {
        let tenant = parse::tenant(&request.tenant)?;
        let mut tx = scheduler
            .reads
            .store
            .requests()
            .begin(&tenant)
            .await
            .map_err(errors::store)?;
        let record = runs::find_record(&mut tx, &request.workspace, &run_id.to_string()).await?;
        let (_, started_at) = watermark_and_start(&mut tx, &record).await?;
        tx.commit().await.map_err(errors::store)?;
        let known_until = match scheduler
            .tokens
            .read(&list(&request), &request.resume_token)?
        {
            None => Position::START,
            Some(cursor) => resume_at(&cursor, started_at)?,
        };
        let (replay, token) = (
            Replay::new(record.run_number, None),
            request.resume_token.clone(),
        );
        Ok(Watcher {
            scheduler,
            tenant,
            request,
            record,
            replay,
            position: Position::START,
            started_at,
            known_until,
            token,
        })
    }

    /// Runs until the run has ended, the caller has gone away, or an error occurs.
    async fn run(
        &mut self,
        [mut here, mut elsewhere]: [watch::Receiver<()>; 2],
        outbox: &mpsc::Sender<Result<pb::WatchRunResponse, Status>>,
    ) -> Result<(), Error> {
        let mut sent_at: Option<Instant> = None;
        loop {
            here.mark_unchanged();
            elsewhere.mark_unchanged();
            let update = self.fold_new_events().await?;
            let ended = self
                .replay
                .replayed
                .as_ref()
                .is_some_and(|replayed| replayed.run.ended_at.is_some());
            let recently_sent = sent_at.is_some_and(|at| at.elapsed() < KEEP_ALIVE);
            if update.run || !recently_sent || ended {
                for message in self.messages(update) {
                    if outbox.send(Ok(message)).await.is_err() {
                        return Ok(());
                    }
                }
                sent_at = Some(Instant::now());
            }
            if ended {
                return Ok(());
            }
            tokio::time::sleep(BATCH_TIME).await;
            tokio::select! {
                Ok(()) = here.changed() => {}
                Ok(()) = elsewhere.changed() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = outbox.closed() => return Ok(()),
            }
        }
    }

    /// Folds the events that the shard's holder has folded since the last look.
    async fn fold_new_events(&mut self) -> Result<WatchUpdate, Error> {
        let store = self.scheduler.reads.store.clone();
        let mut tx = store
            .requests()
            .begin(&self.tenant)
            .await
            .map_err(errors::store)?;
        let (watermark, started_at) = watermark_and_start(&mut tx, &self.record).await?;
        if started_at != self.started_at {
            return Err(expired());
        }
        if watermark <= self.position {
            return Ok(WatchUpdate::default());
        }
        if self.replay.plan.is_none() {
            self.record =
                runs::find_record(&mut tx, &self.request.workspace, &self.request.run_id).await?;
            let (tenant, workspace) = (&self.tenant, &self.request.workspace);
            self.replay.plan =
                runs::find_plan(&self.scheduler.reads, tenant, workspace, &self.record).await?;
        }
        let events =
            run_history::read_events(&mut tx, &self.record, self.position, watermark).await?;
        tx.commit().await.map_err(errors::store)?;
        let mut update = WatchUpdate::default();
        for event in &events {
            let step = self
                .replay
                .fold(event)
                .map_err(|fault| Error::new(Reason::Internal, fault))?;
            if event.position <= self.known_until {
                continue;
            }
            if let Some(step) = step {
                update.run = true;
                update
                    .task_refs
                    .extend(step.changes.created.iter().chain(&step.changes.changed));
            }
            if self.request.include_events {
                let (shard, _) = run_history::first_event(self.record.run_number);
                let plan = self.replay.plan.as_deref();
                update.events.push(wire::event_record(
                    servo_model::Stream::Execution,
                    shard,
                    event,
                    plan,
                ));
            }
        }
        // A caller without a token gets all tasks.
        if self.position == Position::START && self.known_until == Position::START {
            let task_rows = self
                .replay
                .replayed
                .iter()
                .flat_map(|replayed| replayed.run.task_rows());
            update.task_refs = task_rows.map(|(task_ref, _)| task_ref).collect();
        }
        self.position = watermark;
        Ok(update)
    }

    /// Splits an update into messages. Only the last one contains the run and a token after all of
    /// them.
    fn messages(&mut self, update: WatchUpdate) -> Vec<pb::WatchRunResponse> {
        let now = self.token_now();
        let before = std::mem::replace(&mut self.token, now);
        let Some(replayed) = &self.replay.replayed else {
            return Vec::new();
        };
        let tasks: Vec<pb::Task> = update
            .task_refs
            .iter()
            .filter_map(|task_ref| self.task_to_proto(replayed, *task_ref))
            .collect();
        let parts = tasks
            .len()
            .max(update.events.len())
            .div_ceil(ENTRIES_PER_MESSAGE_MAX)
            .max(1);
        let (mut tasks, mut events) = (tasks.into_iter(), update.events.into_iter());
        let part = |last: bool| pb::WatchRunResponse {
            resume_token: if last {
                self.token.clone()
            } else {
                before.clone()
            },
            run: last.then(|| self.run_to_proto(replayed)),
            tasks: tasks.by_ref().take(ENTRIES_PER_MESSAGE_MAX).collect(),
            events: events.by_ref().take(ENTRIES_PER_MESSAGE_MAX).collect(),
            caught_up: last,
        };
        (1..=parts).map(|n| n == parts).map(part).collect()
    }

    fn run_to_proto(&self, replayed: &ReplayedRun) -> pb::Run {
        let plan = self
            .replay
            .plan
            .as_deref()
            .filter(|_| replayed.run.plan.is_some());
        let standing = wire::run_standing(&RunView::of(&replayed.run));
        wire::run_from_standing(
            &replayed.requested,
            plan,
            &replayed.plan_fingerprint,
            standing,
        )
    }

    fn task_to_proto(&self, replayed: &ReplayedRun, task_ref: TaskRef) -> Option<pb::Task> {
        let plan = self.replay.plan.as_deref()?;
        let mapped_over = plan.tasks.get(task_ref.ordinal as usize)?.mapped_over;
        let extras = TaskExtras {
            error: replayed.errors.get(&task_ref).map(Vec::as_slice),
            beat_at: None,
            mapped_count: mapped_over
                .and_then(|up| replayed.run.items(up))
                .map(|(count, _)| *count),
        };
        wire::task_from_row(
            &self.request.run_id,
            plan,
            task_ref,
            replayed.run.task_row(task_ref)?,
            extras,
        )
    }

    fn token_now(&self) -> String {
        let cursor = format!("{}.{}", self.position, self.started_at.unix_us());
        self.scheduler.tokens.write(&list(&self.request), &cursor)
    }
}

fn list(request: &pb::WatchRunRequest) -> [&str; 4] {
    [
        "watch",
        &request.tenant,
        &request.workspace,
        &request.run_id,
    ]
}

/// The watermark of the run's shard and the start of Postgres.
async fn watermark_and_start(
    tx: &mut TenantTx,
    record: &RunRecord,
) -> Result<(Position, Timestamp), Error> {
    let (shard, _) = run_history::first_event(record.run_number);
    shards::watermark_and_start(tx, shard)
        .await
        .map_err(errors::store)
}

fn resume_at(cursor: &str, started_at: Timestamp) -> Result<Position, Error> {
    let (position, started) = cursor.split_once('.').unwrap_or_default();
    let position = position.parse().ok().and_then(Position::new);
    let started = pages::cursor_time(started);
    position
        .filter(|_| started == Some(started_at))
        .ok_or_else(expired)
}

fn expired() -> Error {
    let message =
        "the store was restarted since this resume_token was issued; watch again without it";
    Error::new(Reason::ResumeTokenExpired, message).and_bad_field("resume_token", message)
}
