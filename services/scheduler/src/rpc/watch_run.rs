//! WatchRun: a run's events folded as they come, and what they changed sent on.
//!
//! The watcher folds by itself, so it needs no row of a task and can begin at any place. It looks when this instance
//! folds something of the run, or is told that another one did; while nobody can tell it looks now and then.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::Duration;

use futures::Stream;
use servo_mesh::{Error, Reason};
use servo_model::RunId;
use servo_proto::v1;
use servo_store::{TenantTx, Timestamp, query};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::hear_run::listen_elsewhere;
use super::{Scheduler, answer, get_run, story};
use crate::core::Slot;
use crate::replay::{Begun, Replay};
use crate::shards::RunView;
use crate::wire::{self, Beside, RunRow};

pub(super) type Watched = Pin<Box<dyn Stream<Item = Result<v1::WatchRunResponse, Status>> + Send>>;

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
    asked: v1::WatchRunRequest,
) -> Result<Watched, Error> {
    let run_id = answer::run_id(&asked.run_id)?;
    let mut watcher = Watcher::begin(scheduler.clone(), asked, run_id).await?;
    let bells = [
        scheduler.shards.listen(run_id),
        listen_elsewhere(scheduler.route.clone(), run_id),
    ];
    let (outbox, told) = mpsc::channel(MESSAGES_WAITING_MAX);
    tokio::spawn(async move {
        if let Err(error) = watcher.tell(bells, &outbox).await {
            let _ = outbox.send(Err(error.into())).await;
        }
    });
    Ok(Box::pin(ReceiverStream::new(told)))
}

struct Watcher {
    scheduler: Scheduler,
    asked: v1::WatchRunRequest,
    row: RunRow,
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
struct News {
    run: bool,
    slots: BTreeSet<Slot>,
    events: Vec<v1::EventRecord>,
}

impl Watcher {
    async fn begin(
        scheduler: Scheduler,
        asked: v1::WatchRunRequest,
        run_id: RunId,
    ) -> Result<Watcher, Error> {
        let mut tx = scheduler
            .store
            .requests()
            .begin(&asked.tenant)
            .await
            .map_err(answer::store)?;
        let row = get_run::row(&mut tx, &asked.workspace, &run_id.to_string()).await?;
        let (_, started_at) = mark(&mut tx, &row).await?;
        tx.commit().await.map_err(answer::store)?;
        let known_until = match scheduler.tokens.read(&list(&asked), &asked.resume_token)? {
            None => 0,
            Some(cursor) => resume_at(&cursor, started_at)?,
        };
        let (replay, token) = (
            Replay::new(row.run_number, None),
            asked.resume_token.clone(),
        );
        Ok(Watcher {
            scheduler,
            asked,
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
        outbox: &mpsc::Sender<Result<v1::WatchRunResponse, Status>>,
    ) -> Result<(), Error> {
        let mut said_at: Option<Instant> = None;
        loop {
            here.mark_unchanged();
            elsewhere.mark_unchanged();
            let news = self.look().await?;
            let ended = self
                .replay
                .begun
                .as_ref()
                .is_some_and(|begun| begun.run.ended_at.is_some());
            let silent = said_at.is_some_and(|at| at.elapsed() < STILL_HERE);
            if news.run || !silent || ended {
                for message in self.messages(news) {
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
    async fn look(&mut self) -> Result<News, Error> {
        let store = self.scheduler.store.clone();
        let mut tx = store
            .requests()
            .begin(&self.asked.tenant)
            .await
            .map_err(answer::store)?;
        let (watermark, started_at) = mark(&mut tx, &self.row).await?;
        if started_at != self.started_at {
            return Err(expired());
        }
        if watermark <= self.position {
            return Ok(News::default());
        }
        if self.replay.graph.is_none() {
            self.row = get_run::row(&mut tx, &self.asked.workspace, &self.asked.run_id).await?;
            let (tenant, workspace) = (&self.asked.tenant, &self.asked.workspace);
            self.replay.graph =
                get_run::graph(&self.scheduler, tenant, workspace, &self.row).await?;
        }
        let events = story::events(&mut tx, &self.row, self.position, watermark).await?;
        tx.commit().await.map_err(answer::store)?;
        let mut news = News::default();
        for event in &events {
            let step = self
                .replay
                .fold(event)
                .map_err(|fault| Error::new(Reason::Internal, fault))?;
            if event.position <= self.known_until {
                continue;
            }
            if let Some(step) = step {
                news.run = true;
                news.slots
                    .extend(step.changes.created.iter().chain(&step.changes.changed));
            }
            if self.asked.include_events {
                let (shard, _) = story::place(self.row.run_number);
                let graph = self.replay.graph.as_deref();
                news.events.push(wire::event_record(
                    servo_model::Stream::Execution,
                    shard,
                    event,
                    graph,
                ));
            }
        }
        // Who begins without a token gets everything as it stands.
        if self.position == 0 && self.known_until == 0 {
            let cells = self.replay.begun.iter().flat_map(|begun| begun.run.cells());
            news.slots = cells.map(|(slot, _)| slot).collect();
        }
        self.position = watermark;
        Ok(news)
    }

    /// All but the last are parts: only the last has the run, and a token that leads past all of them.
    fn messages(&mut self, news: News) -> Vec<v1::WatchRunResponse> {
        let now = self.token_now();
        let before = std::mem::replace(&mut self.token, now);
        let Some(begun) = &self.replay.begun else {
            return Vec::new();
        };
        let tasks: Vec<v1::Task> = news
            .slots
            .iter()
            .filter_map(|slot| self.task(begun, *slot))
            .collect();
        let parts = tasks
            .len()
            .max(news.events.len())
            .div_ceil(ENTRIES_PER_MESSAGE_MAX)
            .max(1);
        let (mut tasks, mut events) = (tasks.into_iter(), news.events.into_iter());
        let part = |last: bool| v1::WatchRunResponse {
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

    fn run(&self, begun: &Begun) -> v1::Run {
        let graph = self
            .replay
            .graph
            .as_deref()
            .filter(|_| begun.run.graph.is_some());
        let standing = wire::standing(&RunView::of(&begun.run));
        wire::run_as_it_stands(&begun.asked, graph, &begun.plan_fingerprint, standing)
    }

    fn task(&self, begun: &Begun, slot: Slot) -> Option<v1::Task> {
        let graph = self.replay.graph.as_deref()?;
        let mapped_over = graph.tasks.get(slot.ordinal as usize)?.mapped_over;
        let beside = Beside {
            error: begun.errors.get(&slot).map(Vec::as_slice),
            beat_at: None,
            children: mapped_over
                .and_then(|up| begun.run.items(up))
                .map(|(count, _)| *count),
        };
        wire::task_from_cell(
            &self.asked.run_id,
            graph,
            slot,
            begun.run.cell(slot)?,
            beside,
        )
    }

    fn token_now(&self) -> String {
        let cursor = format!("{}.{}", self.position, self.started_at.unix_us());
        self.scheduler.tokens.write(&list(&self.asked), &cursor)
    }
}

fn list(asked: &v1::WatchRunRequest) -> [&str; 4] {
    ["watch", &asked.tenant, &asked.workspace, &asked.run_id]
}

/// How far the run's shard is folded, and since when Postgres runs.
async fn mark(tx: &mut TenantTx, row: &RunRow) -> Result<(i64, Timestamp), Error> {
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
    let told = "the store was restarted since this resume_token was given; watch again without it";
    Error::new(Reason::ResumeTokenExpired, told).and_bad_field("resume_token", told)
}
