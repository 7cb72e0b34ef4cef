//! WatchRun: a run's events folded as they come, and what they changed sent on.
//!
//! The watcher folds by itself, so it needs no row of a task and can begin at any place. It looks when this instance
//! folds something of the run, or is told that another one did; while nobody can tell it looks now and then.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::Duration;

use futures::Stream;
use servo_mesh::{Error, Reason};
use servo_model::{RunId, TaskRef};
use servo_proto::v1 as pb;
use servo_store::{TenantTx, Timestamp, query};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::hear_run::listen_elsewhere;
use super::{Scheduler, answer, get_run, story};
use crate::replay::{Replay, ReplayedRun};
use crate::shards::RunView;
use crate::wire::{self, RunRecord, TaskExtras};

pub(super) type Watched = Pin<Box<dyn Stream<Item = Result<pb::WatchRunResponse, Status>> + Send>>;

/// How many tasks, and how many events, a message holds.
const ENTRIES_PER_MESSAGE_MAX: usize = 256;
/// What may wait for a slow reader; meanwhile changes gather, and states in between are left out.
const MESSAGES_WAITING_MAX: usize = 4;
/// Changes within this time travel together.
const GATHER: Duration = Duration::from_millis(50);
/// How often it looks by itself: who folds the shard elsewhere may not be heard.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How often a watch on which nothing happens says that it is there.
const STILL_HERE: Duration = Duration::from_secs(15);

pub(super) async fn watch_run(
    scheduler: &Scheduler,
    request: pb::WatchRunRequest,
) -> Result<Watched, Error> {
    let run_id = answer::run_id(&request.run_id)?;
    let mut watcher = Watcher::begin(scheduler.clone(), request, run_id).await?;
    let run_watchers = [
        scheduler.shards.listen(run_id),
        listen_elsewhere(scheduler.route.clone(), run_id),
    ];
    let (outbox, message) = mpsc::channel(MESSAGES_WAITING_MAX);
    tokio::spawn(async move {
        if let Err(error) = watcher.tell(run_watchers, &outbox).await {
            let _ = outbox.send(Err(error.into())).await;
        }
    });
    Ok(Box::pin(ReceiverStream::new(message)))
}

struct Watcher {
    scheduler: Scheduler,
    request: pb::WatchRunRequest,
    row: RunRecord,
    replay: Replay,
    /// Where in the shard it stands, and under which Postgres: a crash may number other events alike.
    position: i64,
    started_at: Timestamp,
    /// What was already known to the caller ends here.
    known_until: i64,
    /// The last token that was sent, or the one it began with.
    token: String,
}

/// What a look found.
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
        let mut tx = scheduler
            .store
            .requests()
            .begin(&request.tenant)
            .await
            .map_err(answer::store)?;
        let row = get_run::row(&mut tx, &request.workspace, &run_id.to_string()).await?;
        let (_, started_at) = mark(&mut tx, &row).await?;
        tx.commit().await.map_err(answer::store)?;
        let known_until = match scheduler
            .tokens
            .read(&list(&request), &request.resume_token)?
        {
            None => 0,
            Some(cursor) => resume_at(&cursor, started_at)?,
        };
        let (replay, token) = (
            Replay::new(row.run_number, None),
            request.resume_token.clone(),
        );
        Ok(Watcher {
            scheduler,
            request,
            row,
            replay,
            position: 0,
            started_at,
            known_until,
            token,
        })
    }

    /// Until the run has ended, the caller is gone, or something fails.
    async fn tell(
        &mut self,
        [mut here, mut elsewhere]: [watch::Receiver<()>; 2],
        outbox: &mpsc::Sender<Result<pb::WatchRunResponse, Status>>,
    ) -> Result<(), Error> {
        let mut said_at: Option<Instant> = None;
        loop {
            here.mark_unchanged();
            elsewhere.mark_unchanged();
            let update = self.look().await?;
            let ended = self
                .replay
                .begun
                .as_ref()
                .is_some_and(|begun| begun.run.ended_at.is_some());
            let silent = said_at.is_some_and(|at| at.elapsed() < STILL_HERE);
            if update.run || !silent || ended {
                for message in self.messages(update) {
                    if outbox.send(Ok(message)).await.is_err() {
                        return Ok(());
                    }
                }
                said_at = Some(Instant::now());
            }
            if ended {
                return Ok(());
            }
            tokio::time::sleep(GATHER).await;
            tokio::select! {
                Ok(()) = here.changed() => {}
                Ok(()) = elsewhere.changed() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                () = outbox.closed() => return Ok(()),
            }
        }
    }

    /// Folds what was folded since.
    async fn look(&mut self) -> Result<WatchUpdate, Error> {
        let store = self.scheduler.store.clone();
        let mut tx = store
            .requests()
            .begin(&self.request.tenant)
            .await
            .map_err(answer::store)?;
        let (watermark, started_at) = mark(&mut tx, &self.row).await?;
        if started_at != self.started_at {
            return Err(expired());
        }
        if watermark <= self.position {
            return Ok(WatchUpdate::default());
        }
        if self.replay.plan.is_none() {
            self.row = get_run::row(&mut tx, &self.request.workspace, &self.request.run_id).await?;
            let (tenant, workspace) = (&self.request.tenant, &self.request.workspace);
            self.replay.plan = get_run::plan(&self.scheduler, tenant, workspace, &self.row).await?;
        }
        let events = story::events(&mut tx, &self.row, self.position, watermark).await?;
        tx.commit().await.map_err(answer::store)?;
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
                let (shard, _) = story::place(self.row.run_number);
                let plan = self.replay.plan.as_deref();
                update.events.push(wire::event_record(
                    servo_model::Stream::Execution,
                    shard,
                    event,
                    plan,
                ));
            }
        }
        // Who begins without a token gets everything as it stands.
        if self.position == 0 && self.known_until == 0 {
            let task_rows = self
                .replay
                .begun
                .iter()
                .flat_map(|begun| begun.run.task_rows());
            update.task_refs = task_rows.map(|(task_ref, _)| task_ref).collect();
        }
        self.position = watermark;
        Ok(update)
    }

    /// All but the last are parts: only the last has the run, and a token that leads past all of them.
    fn messages(&mut self, update: WatchUpdate) -> Vec<pb::WatchRunResponse> {
        let now = self.token_now();
        let before = std::mem::replace(&mut self.token, now);
        let Some(begun) = &self.replay.begun else {
            return Vec::new();
        };
        let tasks: Vec<pb::Task> = update
            .task_refs
            .iter()
            .filter_map(|task_ref| self.task(begun, *task_ref))
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
            run: last.then(|| self.run(begun)),
            tasks: tasks.by_ref().take(ENTRIES_PER_MESSAGE_MAX).collect(),
            events: events.by_ref().take(ENTRIES_PER_MESSAGE_MAX).collect(),
            caught_up: last,
        };
        (1..=parts).map(|n| n == parts).map(part).collect()
    }

    fn run(&self, begun: &ReplayedRun) -> pb::Run {
        let plan = self
            .replay
            .plan
            .as_deref()
            .filter(|_| begun.run.plan.is_some());
        let standing = wire::standing(&RunView::of(&begun.run));
        wire::run_from_standing(&begun.requested, plan, &begun.plan_fingerprint, standing)
    }

    fn task(&self, begun: &ReplayedRun, task_ref: TaskRef) -> Option<pb::Task> {
        let plan = self.replay.plan.as_deref()?;
        let mapped_over = plan.tasks.get(task_ref.ordinal as usize)?.mapped_over;
        let extras = TaskExtras {
            error: begun.errors.get(&task_ref).map(Vec::as_slice),
            beat_at: None,
            children: mapped_over
                .and_then(|up| begun.run.items(up))
                .map(|(count, _)| *count),
        };
        wire::task_from_cell(
            &self.request.run_id,
            plan,
            task_ref,
            begun.run.task_row(task_ref)?,
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

/// How far the run's shard is folded, and since when Postgres runs.
async fn mark(tx: &mut TenantTx, row: &RunRecord) -> Result<(i64, Timestamp), Error> {
    let (shard, _) = story::place(row.run_number);
    let select = query(include_str!("../store/mark.sql")).bind(shard);
    tx.one(select).await.map_err(answer::store)
}

fn resume_at(cursor: &str, started_at: Timestamp) -> Result<i64, Error> {
    let (position, started) = cursor.split_once('.').unwrap_or_default();
    match (position.parse::<i64>(), started.parse::<i64>()) {
        (Ok(position), Ok(started)) if started == started_at.unix_us() => Ok(position),
        _ => Err(expired()),
    }
}

fn expired() -> Error {
    let message =
        "the store was restarted since this resume_token was given; watch again without it";
    Error::new(Reason::ResumeTokenExpired, message).and_bad_field("resume_token", message)
}
