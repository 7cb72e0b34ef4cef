//! TailLogs: the stored lines of a run's log, followed by new ones.
//!
//! A reader is notified when this instance stores lines of the run. Lines that another instance
//! stores are found by polling.

use std::time::Duration;

use prost::Message as _;
use servo_mesh::{Error, Reason};
use servo_model::states::TaskState;
use servo_model::{AttemptId, RunId, TaskId, TaskKey, TaskRef, TenantId};
use servo_proto::v1 as pb;
use servo_service::{errors, request};
use servo_store::TenantTx;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use uuid::Uuid;

use super::{Callback, ResponseStream};
use crate::core::{Attempts, TaskAttempts};
use crate::store::{self, RunRow, StoredBatch, TaskAttemptsRow};

type Outbox = mpsc::Sender<Result<pb::TailLogsResponse, Status>>;

/// Batches that one read returns; each has at most a megabyte.
const BATCHES_PER_READ: i64 = 16;
const MESSAGE_BYTES_MAX: usize = 1 << 20;
const LAST_LINES_MAX: usize = 100_000;
/// Messages that are buffered for a slow reader.
const MESSAGES_QUEUED_MAX: usize = 2;
/// Lines that are stored within this time are sent together.
const BATCHING_DELAY: Duration = Duration::from_millis(50);
/// How often lines that another instance stored are looked for.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often an idle stream sends an empty message.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

pub(super) async fn tail_logs(
    callback: &Callback,
    request: pb::TailLogsRequest,
) -> Result<ResponseStream<pb::TailLogsResponse>, Error> {
    let mut tail = Tail::begin(callback.clone(), request).await?;
    let stored = callback.logs.subscribe(tail.run);
    let (outbox, messages) = mpsc::channel(MESSAGES_QUEUED_MAX);
    servo_actor::spawn_task("log tail", async move {
        if let Err(error) = tail.stream(stored, &outbox).await {
            let _ = outbox.send(Err(error.into())).await;
        }
    });
    Ok(Box::pin(ReceiverStream::new(messages)))
}

/// The attempts whose lines are sent.
enum LogScope {
    Run,
    Task(TaskId),
    Attempt(AttemptId),
}

struct Tail {
    callback: Callback,
    request: pb::TailLogsRequest,
    tenant: TenantId,
    run: RunId,
    scope: LogScope,
    /// Task keys of the plan by ordinal; empty until the run has a plan.
    keys: Vec<TaskKey>,
    attempts: Attempts,
    /// Number of the last batch that was sent.
    arrival: i64,
    /// Lines to skip in the first batch.
    skip_lines: usize,
}

/// The result of one read.
struct Page {
    batches: Vec<StoredBatch>,
    ended: bool,
    caught_up: bool,
}

impl Tail {
    async fn begin(callback: Callback, request: pb::TailLogsRequest) -> Result<Tail, Error> {
        let tenant = request::tenant(&request.tenant)?;
        let bad =
            |field: &str, fault: &dyn std::fmt::Display| Error::bad_field(field, fault.to_string());
        let run: RunId = request
            .run_id
            .parse()
            .map_err(|fault| bad("run_id", &fault))?;
        let scope = match (request.attempt_id.as_str(), request.task_id.as_str()) {
            ("", "") => LogScope::Run,
            ("", task) => LogScope::Task(task.parse().map_err(|fault| bad("task_id", &fault))?),
            (attempt, _) => {
                LogScope::Attempt(attempt.parse().map_err(|fault| bad("attempt_id", &fault))?)
            }
        };
        if request.last_lines as usize > LAST_LINES_MAX {
            return Err(Error::bad_field(
                "last_lines",
                format!("is above {LAST_LINES_MAX}; send less, or 0 for all"),
            ));
        }
        let arrival = resume_at(&callback, &request)?;
        let mut tail = Tail {
            callback,
            request,
            tenant,
            run,
            scope,
            keys: Vec::new(),
            attempts: Attempts::default(),
            arrival: arrival.unwrap_or(0),
            skip_lines: 0,
        };
        let store = tail.callback.store.clone();
        let mut tx = store
            .requests()
            .begin(&tail.tenant)
            .await
            .map_err(errors::store)?;
        tail.load_attempts(&mut tx).await?;
        tail.check_task()?;
        if arrival.is_none() && tail.request.last_lines > 0 {
            tail.seek_back(&mut tx).await?;
        }
        tx.commit().await.map_err(errors::store)?;
        Ok(tail)
    }

    /// Sends until everything is sent, the caller has left, or a read fails.
    async fn stream(
        &mut self,
        mut stored: watch::Receiver<()>,
        outbox: &Outbox,
    ) -> Result<(), Error> {
        let mut sent_at: Option<Instant> = None;
        loop {
            stored.mark_unchanged();
            let page = self.read_page().await?;
            let sent_recently = sent_at.is_some_and(|at| at.elapsed() < KEEPALIVE_INTERVAL);
            let is_done = page.caught_up && (page.ended || !self.request.follow);
            if !page.batches.is_empty() || !sent_recently || is_done {
                let caught_up = page.caught_up;
                for message in self.messages(page.batches, caught_up)? {
                    if outbox.send(Ok(message)).await.is_err() {
                        return Ok(());
                    }
                }
                sent_at = Some(Instant::now());
            }
            if is_done {
                return Ok(());
            }
            if !page.caught_up {
                continue;
            }
            tokio::time::sleep(BATCHING_DELAY).await;
            tokio::select! {
                _ = stored.changed() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = outbox.closed() => return Ok(()),
            }
        }
    }

    async fn read_page(&mut self) -> Result<Page, Error> {
        let store = self.callback.store.clone();
        let mut tx = store
            .requests()
            .begin(&self.tenant)
            .await
            .map_err(errors::store)?;
        // Read before the lines, so that all lines of a run that has ended are seen.
        let run_ended = self.run_row(&mut tx).await?.2;
        let is_partial = !matches!(self.scope, LogScope::Run);
        if is_partial && self.request.follow {
            self.load_attempts(&mut tx).await?;
        }
        let ended = run_ended || self.scope_ended();
        let attempts = self.attempts_in_scope();
        let batches =
            store::logs_after(&mut tx, &self.run, self.arrival, attempts, BATCHES_PER_READ)
                .await
                .map_err(errors::store)?;
        if batches
            .iter()
            .any(|(_, attempt, _)| self.attempts.task_of(&attempt_id(*attempt)).is_none())
        {
            self.load_attempts(&mut tx).await?;
        }
        tx.commit().await.map_err(errors::store)?;
        let caught_up = (batches.len() as i64) < BATCHES_PER_READ;
        Ok(Page {
            batches,
            ended,
            caught_up,
        })
    }

    /// Finds the batch from which on there are as many lines as requested.
    async fn seek_back(&mut self, tx: &mut TenantTx) -> Result<(), Error> {
        let (mut missing, mut before) = (self.request.last_lines as usize, i64::MAX);
        while missing > 0 {
            let attempts = self.attempts_in_scope();
            let batches = store::logs_before(tx, &self.run, before, attempts, BATCHES_PER_READ)
                .await
                .map_err(errors::store)?;
            if batches.is_empty() {
                break;
            }
            for (arrival, _, lines) in batches {
                if missing == 0 {
                    break;
                }
                let count = self.lines(&lines)?.len();
                before = arrival;
                self.arrival = arrival - 1;
                self.skip_lines = count.saturating_sub(missing);
                missing = missing.saturating_sub(count);
            }
        }
        Ok(())
    }

    /// Returns number, plan id and whether the run has ended.
    async fn run_row(&self, tx: &mut TenantTx) -> Result<RunRow, Error> {
        let row = store::find_run(tx, &self.run, &self.request.workspace)
            .await
            .map_err(errors::store)?;
        row.ok_or_else(|| {
            let message = format!(
                "there is no run {} in workspace `{}`",
                self.run, self.request.workspace
            );
            Error::new(Reason::RunNotFound, message)
        })
    }

    /// Reads the attempts of the run, and the plan that their ids are derived from.
    async fn load_attempts(&mut self, tx: &mut TenantTx) -> Result<(), Error> {
        let (number, plan_id, _) = self.run_row(tx).await?;
        let Some(plan_id) = plan_id else {
            return Ok(());
        };
        if self.keys.is_empty() {
            let plan = store::read_plan(tx, &self.tenant, &self.request.workspace, plan_id)
                .await
                .map_err(errors::store)?;
            let Some(plan) = plan else { return Ok(()) };
            self.keys = keys(&plan).map_err(|fault| Error::new(Reason::Internal, fault))?;
        }
        let rows = store::task_attempts(tx, number)
            .await
            .map_err(errors::store)?;
        let tasks: Vec<TaskAttempts> = rows.into_iter().map(core_attempts).collect();
        self.attempts = Attempts::of(&self.run, &self.keys, &tasks);
        Ok(())
    }

    fn check_task(&self) -> Result<(), Error> {
        let LogScope::Task(task) = &self.scope else {
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

    fn attempts_in_scope(&self) -> Option<Vec<Uuid>> {
        let uuid = |id: &AttemptId| Uuid::from_bytes(*id.as_bytes());
        match &self.scope {
            LogScope::Run => None,
            LogScope::Task(task) => Some(self.attempts.of_task(task).iter().map(uuid).collect()),
            LogScope::Attempt(attempt) => Some(vec![uuid(attempt)]),
        }
    }

    /// Returns whether the scope has ended before the run has.
    fn scope_ended(&self) -> bool {
        match &self.scope {
            LogScope::Run | LogScope::Task(_) => false,
            LogScope::Attempt(attempt) => !self.attempts.is_active(attempt),
        }
    }

    /// Packs whole batches into messages, so that a resume token points between batches. The last
    /// message says whether more is stored.
    fn messages(
        &mut self,
        batches: Vec<StoredBatch>,
        caught_up: bool,
    ) -> Result<Vec<pb::TailLogsResponse>, Error> {
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
            let kept = self
                .lines(&batch)?
                .into_iter()
                .skip(std::mem::take(&mut self.skip_lines));
            lines.extend(kept.map(|line| pb::LogLine {
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

    fn message(&self, lines: Vec<pb::LogLine>, caught_up: bool) -> pb::TailLogsResponse {
        let cursor = self.arrival.to_string();
        let resume_token = self
            .callback
            .tokens
            .write(&token_scope(&self.request), &cursor);
        pb::TailLogsResponse {
            resume_token,
            lines,
            caught_up,
        }
    }

    /// Returns the lines of a batch at or above the requested level, preceded by a notice about
    /// lines that the worker dropped.
    fn lines(&self, batch: &[u8]) -> Result<Vec<pb::LogLine>, Error> {
        let stored = pb::AppendLogsRequest::decode(batch).map_err(|error| {
            Error::new(
                Reason::Internal,
                format!("a stored batch of log lines cannot be decoded: {error}"),
            )
        })?;
        let dropped = (stored.dropped_lines > 0).then(|| pb::LogLine {
            stream: pb::LogStream::Worker.into(),
            level: pb::LogLevel::Warning.into(),
            text: format!(
                "{} lines were dropped here by the worker",
                stored.dropped_lines
            ),
            ..pb::LogLine::default()
        });
        let min_level = self.request.min_level;
        Ok(dropped
            .into_iter()
            .chain(stored.lines)
            .filter(|line| level_of(line) >= min_level)
            .collect())
    }
}

/// Returns the line's level; INFO if it has none.
fn level_of(line: &pb::LogLine) -> i32 {
    match line.level() {
        pb::LogLevel::Unspecified => pb::LogLevel::Info.into(),
        known => known.into(),
    }
}

fn keys(plan: &[u8]) -> Result<Vec<TaskKey>, String> {
    let plan = pb::Plan::decode(plan).map_err(|error| error.to_string())?;
    plan.tasks
        .iter()
        .map(|task| task.task_key.parse().map_err(|fault| format!("{fault}")))
        .collect()
}

fn core_attempts((ordinal, item, attempts, active, state): TaskAttemptsRow) -> TaskAttempts {
    let is_active = TaskState::from_code(state).is_some_and(TaskState::has_attempt);
    TaskAttempts {
        task: TaskRef {
            ordinal: ordinal.unsigned_abs(),
            map_index: u32::try_from(item).ok(),
        },
        attempts: attempts.unsigned_abs(),
        active: active.filter(|_| is_active).map(attempt_id),
    }
}

fn attempt_id(id: Uuid) -> AttemptId {
    AttemptId::from_bytes(id.into_bytes())
}

/// The fields that a token is bound to. `follow` may change between calls.
fn token_scope(request: &pb::TailLogsRequest) -> [&str; 6] {
    [
        "logs",
        &request.tenant,
        &request.workspace,
        &request.run_id,
        &request.task_id,
        &request.attempt_id,
    ]
}

fn resume_at(callback: &Callback, request: &pb::TailLogsRequest) -> Result<Option<i64>, Error> {
    let expired = |_| {
        let message = "is not a token of this log; start again without it";
        Error::new(
            Reason::ResumeTokenExpired,
            format!("resume_token: {message}"),
        )
        .and_bad_field("resume_token", message)
    };
    let cursor = callback
        .tokens
        .read(&token_scope(request), &request.resume_token)
        .map_err(expired)?;
    Ok(cursor.and_then(|cursor| cursor.parse().ok()))
}
