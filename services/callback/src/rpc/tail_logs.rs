//! TailLogs: what is stored of a run's logs, then what comes, as long as somebody follows.
//!
//! It looks when this instance stores lines of the run; what another instance stores it finds by looking now and then.

use std::pin::Pin;
use std::time::Duration;

use futures::Stream;
use prost::Message as _;
use servo_mesh::{Error, Reason};
use servo_model::states::TaskState;
use servo_model::{AttemptId, RunId, TaskId, TaskKey};
use servo_proto::v1;
use servo_store::{StoreError, TenantTx, query};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use uuid::Uuid;

use super::Callback;
use crate::core::{Attempts, TaskLine};

type Tailed = Pin<Box<dyn Stream<Item = Result<v1::TailLogsResponse, Status>> + Send>>;
type Outbox = mpsc::Sender<Result<v1::TailLogsResponse, Status>>;

/// Batches that one look reads; each is at most a megabyte.
const BATCHES_PER_LOOK: i64 = 16;
const MESSAGE_BYTES_MAX: usize = 1 << 20;
const LAST_LINES_MAX: usize = 100_000;
/// What may wait for a slow reader.
const MESSAGES_WAITING_MAX: usize = 2;
/// Lines within this time travel together.
const GATHER: Duration = Duration::from_millis(50);
/// How often it looks by itself: lines may be stored elsewhere.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How often a stream on which nothing comes says that it is there.
const STILL_HERE: Duration = Duration::from_secs(15);

pub(super) async fn tail_logs(
    callback: &Callback,
    asked: v1::TailLogsRequest,
) -> Result<Tailed, Error> {
    let mut tail = Tail::begin(callback.clone(), asked).await?;
    let bell = callback.logs.listen(tail.run);
    let (outbox, told) = mpsc::channel(MESSAGES_WAITING_MAX);
    tokio::spawn(async move {
        if let Err(error) = tail.tell(bell, &outbox).await {
            let _ = outbox.send(Err(error.into())).await;
        }
    });
    Ok(Box::pin(ReceiverStream::new(told)))
}

/// Whose lines are wanted.
enum Wanted {
    Run,
    Task(TaskId),
    Attempt(AttemptId),
}

struct Tail {
    callback: Callback,
    asked: v1::TailLogsRequest,
    run: RunId,
    wanted: Wanted,
    /// The tasks of the plan by ordinal; none before the run has a plan.
    keys: Vec<TaskKey>,
    attempts: Attempts,
    /// The last batch that was sent.
    arrival: i64,
    /// Lines to leave out of the first batch.
    leave_out: usize,
}

/// arrival, attempt, lines
type Batch = (i64, Uuid, Vec<u8>);

/// What a look found.
struct Look {
    batches: Vec<Batch>,
    ended: bool,
    caught_up: bool,
}

impl Tail {
    async fn begin(callback: Callback, asked: v1::TailLogsRequest) -> Result<Tail, Error> {
        let bad =
            |field: &str, fault: &dyn std::fmt::Display| Error::bad_field(field, fault.to_string());
        let run: RunId = asked
            .run_id
            .parse()
            .map_err(|fault| bad("run_id", &fault))?;
        let wanted = match (asked.attempt_id.as_str(), asked.task_id.as_str()) {
            ("", "") => Wanted::Run,
            ("", task) => Wanted::Task(task.parse().map_err(|fault| bad("task_id", &fault))?),
            (attempt, _) => {
                Wanted::Attempt(attempt.parse().map_err(|fault| bad("attempt_id", &fault))?)
            }
        };
        if asked.last_lines as usize > LAST_LINES_MAX {
            return Err(Error::bad_field(
                "last_lines",
                format!("is above {LAST_LINES_MAX}; write less, or 0 for all"),
            ));
        }
        let arrival = resume_at(&callback, &asked)?;
        let mut tail = Tail {
            callback,
            asked,
            run,
            wanted,
            keys: Vec::new(),
            attempts: Attempts::default(),
            arrival: arrival.unwrap_or(0),
            leave_out: 0,
        };
        let store = tail.callback.store.clone();
        let mut tx = store
            .requests()
            .begin(&tail.asked.tenant)
            .await
            .map_err(unavailable)?;
        tail.learn(&mut tx).await?;
        tail.check_task()?;
        if arrival.is_none() && tail.asked.last_lines > 0 {
            tail.go_back(&mut tx).await?;
        }
        tx.commit().await.map_err(unavailable)?;
        Ok(tail)
    }

    /// Until everything wanted was sent, the caller is gone, or something fails.
    async fn tell(&mut self, mut bell: watch::Receiver<()>, outbox: &Outbox) -> Result<(), Error> {
        let mut said_at: Option<Instant> = None;
        loop {
            bell.mark_unchanged();
            let look = self.look().await?;
            let quiet = said_at.is_some_and(|at| at.elapsed() < STILL_HERE);
            let over = look.caught_up && (look.ended || !self.asked.follow);
            if !look.batches.is_empty() || !quiet || over {
                let caught_up = look.caught_up;
                for message in self.messages(look.batches, caught_up)? {
                    if outbox.send(Ok(message)).await.is_err() {
                        return Ok(());
                    }
                }
                said_at = Some(Instant::now());
            }
            if over {
                return Ok(());
            }
            if !look.caught_up {
                continue;
            }
            tokio::time::sleep(GATHER).await;
            tokio::select! {
                _ = bell.changed() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                () = outbox.closed() => return Ok(()),
            }
        }
    }

    async fn look(&mut self) -> Result<Look, Error> {
        let store = self.callback.store.clone();
        let mut tx = store
            .requests()
            .begin(&self.asked.tenant)
            .await
            .map_err(unavailable)?;
        // Before the lines are read: what is stored until the end is seen then.
        let run_ended = self.run_row(&mut tx).await?.2;
        let selective = !matches!(self.wanted, Wanted::Run);
        if selective && self.asked.follow {
            self.learn(&mut tx).await?;
        }
        let ended = run_ended || self.wanted_ended();
        let batches: Vec<Batch> = tx
            .all(
                query(include_str!("../store/tail_logs.sql"))
                    .bind(Uuid::from_bytes(*self.run.as_bytes()))
                    .bind(self.arrival)
                    .bind(self.attempts_wanted())
                    .bind(BATCHES_PER_LOOK),
            )
            .await
            .map_err(unavailable)?;
        if batches
            .iter()
            .any(|(_, attempt, _)| self.attempts.task_of(&attempt_id(*attempt)).is_none())
        {
            self.learn(&mut tx).await?;
        }
        tx.commit().await.map_err(unavailable)?;
        let caught_up = (batches.len() as i64) < BATCHES_PER_LOOK;
        Ok(Look {
            batches,
            ended,
            caught_up,
        })
    }

    /// Looks for the place from which on there are as many lines as wanted.
    async fn go_back(&mut self, tx: &mut TenantTx) -> Result<(), Error> {
        let (mut missing, mut before) = (self.asked.last_lines as usize, i64::MAX);
        while missing > 0 {
            let batches: Vec<Batch> = tx
                .all(
                    query(include_str!("../store/tail_logs_back.sql"))
                        .bind(Uuid::from_bytes(*self.run.as_bytes()))
                        .bind(before)
                        .bind(self.attempts_wanted())
                        .bind(BATCHES_PER_LOOK),
                )
                .await
                .map_err(unavailable)?;
            if batches.is_empty() {
                break;
            }
            for (arrival, _, lines) in batches {
                if missing == 0 {
                    break;
                }
                let count = self.lines(&lines)?.len();
                (before, self.arrival) = (arrival, arrival - 1);
                self.leave_out = count.saturating_sub(missing);
                missing = missing.saturating_sub(count);
            }
        }
        Ok(())
    }

    /// Number, plan, whether it has ended.
    async fn run_row(&self, tx: &mut TenantTx) -> Result<(i64, Option<Vec<u8>>, bool), Error> {
        let select = query(include_str!("../store/tail_run.sql"))
            .bind(Uuid::from_bytes(*self.run.as_bytes()))
            .bind(&self.asked.workspace);
        let row = tx.optional(select).await.map_err(unavailable)?;
        row.ok_or_else(|| {
            let told = format!(
                "there is no run {} in workspace `{}`",
                self.run, self.asked.workspace
            );
            Error::new(Reason::RunNotFound, told)
        })
    }

    /// Reads which attempts there are, and the plan that names them.
    async fn learn(&mut self, tx: &mut TenantTx) -> Result<(), Error> {
        let (number, plan_id, _) = self.run_row(tx).await?;
        let Some(plan_id) = plan_id else {
            return Ok(());
        };
        if self.keys.is_empty() {
            let select = query(include_str!("../store/tail_plan.sql"))
                .bind(&self.asked.tenant)
                .bind(&self.asked.workspace)
                .bind(plan_id);
            let plan: Option<(Vec<u8>,)> = tx.optional(select).await.map_err(unavailable)?;
            let Some((plan,)) = plan else { return Ok(()) };
            self.keys = keys(&plan).map_err(|fault| Error::new(Reason::Internal, fault))?;
        }
        let select = query(include_str!("../store/tail_tasks.sql")).bind(number);
        let rows: Vec<(i32, i32, i32, Option<Uuid>, i16)> =
            tx.all(select).await.map_err(unavailable)?;
        let lines: Vec<TaskLine> = rows.into_iter().map(task_line).collect();
        self.attempts = Attempts::of(&self.run, &self.keys, &lines);
        Ok(())
    }

    fn check_task(&self) -> Result<(), Error> {
        let Wanted::Task(task) = &self.wanted else {
            return Ok(());
        };
        let planned = self.keys.iter().any(|key| key.id() == *task);
        if planned || !self.attempts.of_task(task).is_empty() {
            return Ok(());
        }
        Err(Error::new(
            Reason::TaskNotFound,
            format!("run {} has no task {task}", self.run),
        ))
    }

    fn attempts_wanted(&self) -> Option<Vec<Uuid>> {
        let uuid = |id: &AttemptId| Uuid::from_bytes(*id.as_bytes());
        match &self.wanted {
            Wanted::Run => None,
            Wanted::Task(task) => Some(self.attempts.of_task(task).iter().map(uuid).collect()),
            Wanted::Attempt(attempt) => Some(vec![uuid(attempt)]),
        }
    }

    /// Whether what is wanted has come to its end before the run does.
    fn wanted_ended(&self) -> bool {
        match &self.wanted {
            Wanted::Run | Wanted::Task(_) => false,
            Wanted::Attempt(attempt) => !self.attempts.goes_on(attempt),
        }
    }

    /// Whole batches, so that a token leads past them; the last says whether that was all.
    fn messages(
        &mut self,
        batches: Vec<Batch>,
        caught_up: bool,
    ) -> Result<Vec<v1::TailLogsResponse>, Error> {
        let mut messages = Vec::new();
        let (mut lines, mut bytes) = (Vec::new(), 0);
        for (arrival, attempt, batch) in batches {
            if bytes > 0 && bytes + batch.len() > MESSAGE_BYTES_MAX {
                messages.push(self.message(std::mem::take(&mut lines), false));
                bytes = 0;
            }
            let attempt = attempt_id(attempt);
            let task_id = self
                .attempts
                .task_of(&attempt)
                .map(TaskId::to_string)
                .unwrap_or_default();
            let wanted = self
                .lines(&batch)?
                .into_iter()
                .skip(std::mem::take(&mut self.leave_out));
            lines.extend(wanted.map(|line| v1::LogLine {
                task_id: task_id.clone(),
                attempt_id: attempt.to_string(),
                ..line
            }));
            bytes += batch.len();
            self.arrival = arrival;
        }
        messages.push(self.message(lines, caught_up));
        Ok(messages)
    }

    fn message(&self, lines: Vec<v1::LogLine>, caught_up: bool) -> v1::TailLogsResponse {
        let cursor = self.arrival.to_string();
        let resume_token = self.callback.tokens.write(&list(&self.asked), &cursor);
        v1::TailLogsResponse {
            resume_token,
            lines,
            caught_up,
        }
    }

    /// The lines of a batch that are important enough, after a word about those that the worker had to drop.
    fn lines(&self, batch: &[u8]) -> Result<Vec<v1::LogLine>, Error> {
        let stored = v1::AppendLogsRequest::decode(batch).map_err(|error| {
            Error::new(
                Reason::Internal,
                format!("a stored batch of lines is broken: {error}"),
            )
        })?;
        let dropped = (stored.dropped_lines > 0).then(|| v1::LogLine {
            stream: v1::LogStream::Worker.into(),
            level: v1::LogLevel::Warning.into(),
            text: format!(
                "{} lines were dropped here by the worker",
                stored.dropped_lines
            ),
            ..v1::LogLine::default()
        });
        let least = self.asked.min_level;
        Ok(dropped
            .into_iter()
            .chain(stored.lines)
            .filter(|line| importance(line) >= least)
            .collect())
    }
}

/// A line that does not say how important it is, is for the record.
fn importance(line: &v1::LogLine) -> i32 {
    match line.level() {
        v1::LogLevel::Unspecified => v1::LogLevel::Info.into(),
        known => known.into(),
    }
}

fn keys(plan: &[u8]) -> Result<Vec<TaskKey>, String> {
    let plan = v1::Plan::decode(plan).map_err(|error| error.to_string())?;
    plan.tasks
        .iter()
        .map(|task| task.task_key.parse().map_err(|fault| format!("{fault}")))
        .collect()
}

fn task_line(
    (ordinal, item, attempts, active, state): (i32, i32, i32, Option<Uuid>, i16),
) -> TaskLine {
    let goes_on = TaskState::from_code(state).is_some_and(TaskState::has_attempt);
    TaskLine {
        ordinal: ordinal.unsigned_abs(),
        item: u32::try_from(item).ok(),
        attempts: attempts.unsigned_abs(),
        active: active.filter(|_| goes_on).map(attempt_id),
    }
}

fn attempt_id(id: Uuid) -> AttemptId {
    AttemptId::from_bytes(id.into_bytes())
}

/// What a token belongs to; the wish to follow may change.
fn list(asked: &v1::TailLogsRequest) -> [&str; 6] {
    [
        "logs",
        &asked.tenant,
        &asked.workspace,
        &asked.run_id,
        &asked.task_id,
        &asked.attempt_id,
    ]
}

fn resume_at(callback: &Callback, asked: &v1::TailLogsRequest) -> Result<Option<i64>, Error> {
    let expired = |_| {
        let told = "is not from this log; read it again without a token";
        Error::new(Reason::ResumeTokenExpired, format!("resume_token: {told}"))
            .and_bad_field("resume_token", told)
    };
    let cursor = callback
        .tokens
        .read(&list(asked), &asked.resume_token)
        .map_err(expired)?;
    Ok(cursor.and_then(|cursor| cursor.parse().ok()))
}

fn unavailable(error: StoreError) -> Error {
    Error::new(Reason::NotReady, error.to_string())
}
