//! Registering, pulling with credits, and leaving.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use servo_proto::v1 as pb;
use servo_proto::v1::pull_tasks_request::Message as Say;
use servo_proto::v1::pull_tasks_response::Message as Told;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};
use tracing::{debug, info};

use super::attempt::{Attempt, Handler};
use super::envelopes::{Seen, Verify};
use super::reports::Reports;
use super::run;
use crate::client::Client;
use crate::error::{Error, Reason};

/// Outcomes without an answer above which no more work is taken.
const REPORTS_OPEN_MAX: usize = 4_096;
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// A sign of life on a silent stream.
const ALIVE_EVERY: Duration = Duration::from_secs(10);
const RENEW_AHEAD: Duration = Duration::from_secs(60);
/// How long attempts may take to end when the worker is told to leave.
const LEAVE_GRACE: Duration = Duration::from_secs(30);

/// Whose worker it is, and what it offers.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    pub(super) tenant: String,
    pub(super) info: pb::WorkerInfo,
    pub(super) worker_id: String,
    pub(super) leave_grace: Duration,
    pub(super) callbacks: Vec<Client>,
}

impl WorkerConfig {
    /// A worker with a new id. The tenant `-` serves everybody, where an operator allows it.
    pub fn new(tenant: impl Into<String>, info: pb::WorkerInfo) -> WorkerConfig {
        let worker_id = ulid::Ulid::generate().to_string();
        let callbacks = Vec::new();
        WorkerConfig {
            tenant: tenant.into(),
            info,
            worker_id,
            leave_grace: LEAVE_GRACE,
            callbacks,
        }
    }

    /// A worker that comes back keeps its id.
    #[must_use]
    pub fn worker_id(self, id: impl Into<String>) -> WorkerConfig {
        WorkerConfig {
            worker_id: id.into(),
            ..self
        }
    }

    #[must_use]
    pub fn leave_grace(self, grace: Duration) -> WorkerConfig {
        WorkerConfig {
            leave_grace: grace,
            ..self
        }
    }

    /// Another instance of the callback service, to report to when the one before does not answer.
    #[must_use]
    pub fn also_report_to(mut self, callback: Client) -> WorkerConfig {
        self.callbacks.push(callback);
        self
    }

    /// The way of reports to `first` and to whoever stands in for it.
    pub(super) fn reports(&self, first: Client) -> Reports {
        let callbacks = std::iter::once(first)
            .chain(self.callbacks.iter().cloned())
            .collect();
        Reports::start(callbacks, self.tenant.as_str().into())
    }

    pub(super) async fn register(
        &self,
        dispatcher: &Client,
        session: &str,
    ) -> Result<pb::RegisterWorkerResponse, Status> {
        let request = pb::RegisterWorkerRequest {
            tenant: self.tenant.clone(),
            worker_id: self.worker_id.clone(),
            session: session.to_owned(),
            info: Some(self.info.clone()),
        };
        Ok(dispatcher
            .dispatcher()
            .register_worker(request)
            .await?
            .into_inner())
    }
}

/// A worker process. One handler runs all its attempts.
pub struct Worker<H> {
    dispatcher: Client,
    config: WorkerConfig,
    session: Arc<str>,
    handler: Arc<H>,
    reports: Reports,
    leave: CancellationToken,
    /// Gives back everything that runs.
    interrupt: CancellationToken,
    running: HashMap<String, Attempt>,
    ended: (
        mpsc::UnboundedSender<String>,
        mpsc::UnboundedReceiver<String>,
    ),
    seen: Seen,
}

/// Tells a worker to leave.
#[derive(Debug, Clone)]
pub struct WorkerHandle {
    pub(super) leave: CancellationToken,
}

impl WorkerHandle {
    /// Take nothing more, finish what runs, leave.
    pub fn leave(&self) {
        self.leave.cancel();
    }
}

/// Why a stream of envelopes ended.
enum End {
    /// Connect again, after a new registration.
    Again,
    /// It left.
    Left,
}

impl<H: Handler> Worker<H> {
    /// Through the gateway both clients are the same; directly they are the two services.
    pub fn new(
        dispatcher: Client,
        callback: Client,
        config: WorkerConfig,
        handler: H,
    ) -> Worker<H> {
        let reports = config.reports(callback);
        Worker {
            dispatcher,
            config,
            session: ulid::Ulid::generate().to_string().into(),
            handler: Arc::new(handler),
            reports,
            leave: CancellationToken::new(),
            interrupt: CancellationToken::new(),
            running: HashMap::new(),
            ended: mpsc::unbounded_channel(),
            seen: Seen::default(),
        }
    }

    pub fn handle(&self) -> WorkerHandle {
        WorkerHandle {
            leave: self.leave.clone(),
        }
    }

    pub fn session(&self) -> &str {
        &self.session
    }

    /// Works until it is told to leave. Ends with an error only when the server refuses the worker for good.
    pub async fn run(mut self) -> Result<(), Error> {
        let mut pause = PAUSE_MIN;
        loop {
            let begun = tokio::time::Instant::now();
            let ended = self.serve().await;
            match ended {
                // What was reported must arrive; the server may be away for a while.
                Ok(End::Left) => {
                    self.reports.below(1).await;
                    return Ok(());
                }
                Ok(End::Again) => {}
                Err(status) if is_final(&status) => return Err(status.into()),
                Err(status) => debug!(%status, "the stream of envelopes broke"),
            }
            pause = if begun.elapsed() > PAUSE_MAX {
                PAUSE_MIN
            } else {
                (pause * 2).min(PAUSE_MAX)
            };
            let pause = tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..1.0)));
            self.leave.run_until_cancelled(pause).await;
        }
    }

    /// Registers, connects where it is told to, and works until that ends.
    async fn serve(&mut self) -> Result<End, Status> {
        let leave = self.leave.clone();
        let Some(registered) = leave.run_until_cancelled(self.register()).await else {
            return Ok(self.leave_unheard().await);
        };
        let registered = registered?;
        let client = match registered.address.as_str() {
            "" => self.dispatcher.clone(),
            address => self
                .dispatcher
                .at(address)
                .map_err(|error| Status::invalid_argument(error.to_string()))?,
        };
        let (requests, outgoing) = mpsc::unbounded_channel();
        self.note_ended();
        let free = (self.config.info.slots as usize).saturating_sub(self.running.len());
        let open = pb::PullOpen {
            session: self.session.to_string(),
            attempt_ids: self.running.keys().cloned().collect(),
            credits: u32::try_from(free).unwrap_or(u32::MAX),
        };
        let stream = Outgoing {
            requests,
            tenant: self.config.tenant.clone(),
            worker_id: self.config.worker_id.clone(),
        };
        stream.say(Say::Open(open));
        let mut dispatcher = client.dispatcher();
        let opening = dispatcher.pull_tasks(UnboundedReceiverStream::new(outgoing));
        let Some(opened) = leave.run_until_cancelled(opening).await else {
            return Ok(self.leave_unheard().await);
        };
        let mut told = opened
            .map_err(|status| elsewhere(&registered, status))?
            .into_inner();
        let left = self.pull(&registered, &stream, &mut told).await?;
        let Some((grace, comment)) = left else {
            return Ok(End::Again);
        };
        stream.say(Say::Leave(pb::PullLeave {
            comment: comment.to_owned(),
        }));
        self.finish_running(grace, Some(&mut told)).await;
        // The server ends the stream when it has noted that we are gone.
        drop(stream);
        let _ = tokio::time::timeout(PAUSE_MAX, async {
            while let Ok(Some(_)) = told.message().await {}
        })
        .await;
        Ok(End::Left)
    }

    /// Told to leave while there is no stream to say so on.
    async fn leave_unheard(&mut self) -> End {
        self.finish_running(self.config.leave_grace, None).await;
        End::Left
    }

    async fn register(&self) -> Result<pb::RegisterWorkerResponse, Status> {
        self.config.register(&self.dispatcher, &self.session).await
    }

    /// Works until the stream ends, or until it is time to leave: within which grace, and why.
    async fn pull(
        &mut self,
        registered: &pb::RegisterWorkerResponse,
        stream: &Outgoing,
        told: &mut Streaming<pb::PullTasksResponse>,
    ) -> Result<Option<(Duration, &'static str)>, Status> {
        let verify = Verify::new(registered);
        let renew = tokio::time::sleep(until_renewal(registered));
        let mut alive = tokio::time::interval(ALIVE_EVERY);
        tokio::pin!(renew);
        let leave = self.leave.clone();
        let mut ended = Vec::new();
        loop {
            tokio::select! {
                count = self.ended.1.recv_many(&mut ended, usize::MAX) => {
                    ended.drain(..).for_each(|attempt| { self.running.remove(&attempt); });
                    self.reports.below(REPORTS_OPEN_MAX).await;
                    stream.grant(count);
                }
                told = told.message() => match told?.and_then(|told| told.message) {
                    Some(Told::Envelopes(batch)) => stream.grant(self.start_all(batch, &verify)),
                    Some(Told::Cancels(cancels)) => self.cancel(&cancels),
                    Some(Told::Drain(drain)) => return Ok(Some((grace_of(&drain), "told to drain"))),
                    Some(Told::Moved(_)) | None => return Ok(None),
                    Some(Told::Idle(_)) => {}
                },
                () = &mut renew => {
                    let again = self.register().await?;
                    renew.set(tokio::time::sleep(until_renewal(&again)));
                }
                _ = alive.tick() => stream.say(Say::Credits(pb::PullCredits { count: 0 })),
                () = leave.cancelled() => return Ok(Some((self.config.leave_grace, "the process ends"))),
            }
        }
    }

    /// Answers how many of them were not taken, whose credits are granted again.
    fn start_all(&mut self, batch: pb::EnvelopeBatch, verify: &Verify) -> usize {
        let refused = batch
            .envelopes
            .iter()
            .filter(|signed| !self.start(signed, verify));
        // Counting drives the starting.
        refused.count()
    }

    fn start(&mut self, signed: &pb::SignedEnvelope, verify: &Verify) -> bool {
        let Some(envelope) = verify.open(signed) else {
            return false;
        };
        if !self.seen.is_new(&envelope.attempt_id) {
            return false;
        }
        let (session, worker_id) = (self.session.clone(), self.config.worker_id.as_str().into());
        let attempt = Attempt::new(
            envelope,
            session,
            worker_id,
            self.interrupt.clone(),
            verify.interval,
        );
        let id = attempt.envelope().attempt_id.clone();
        self.running.insert(id.clone(), attempt.clone());
        let (handler, reports, ended) = (
            self.handler.clone(),
            self.reports.clone(),
            self.ended.0.clone(),
        );
        tokio::spawn(async move {
            run::run(handler, attempt, reports).await;
            let _ = ended.send(id);
        });
        true
    }

    fn cancel(&self, cancels: &pb::CancelBatch) {
        for attempt in cancels
            .attempt_ids
            .iter()
            .filter_map(|id| self.running.get(id))
        {
            attempt.0.cancelled.cancel();
        }
    }

    fn note_ended(&mut self) {
        while let Ok(attempt) = self.ended.1.try_recv() {
            self.running.remove(&attempt);
        }
    }

    /// Waits until nothing runs; after the grace the rest is given back. What is told meanwhile still counts.
    async fn finish_running(
        &mut self,
        grace: Duration,
        mut told: Option<&mut Streaming<pb::PullTasksResponse>>,
    ) {
        info!(running = self.running.len(), ?grace, "leaving");
        let cut_off = tokio::time::sleep(grace);
        tokio::pin!(cut_off);
        self.note_ended();
        while !self.running.is_empty() {
            tokio::select! {
                () = &mut cut_off, if !self.interrupt.is_cancelled() => self.interrupt.cancel(),
                Some(attempt) = self.ended.1.recv() => { self.running.remove(&attempt); }
                message = next(&mut told) => match message {
                    Some(Told::Cancels(cancels)) => self.cancel(&cancels),
                    Some(Told::Drain(drain)) if drain.kill => self.interrupt.cancel(),
                    Some(_) => {}
                    None => told = None,
                },
            }
        }
    }
}

/// The next message; never, without a stream.
async fn next(told: &mut Option<&mut Streaming<pb::PullTasksResponse>>) -> Option<Told> {
    match told {
        Some(told) => told.message().await.ok().flatten()?.message,
        None => std::future::pending().await,
    }
}

/// What a worker says.
struct Outgoing {
    requests: mpsc::UnboundedSender<pb::PullTasksRequest>,
    tenant: String,
    worker_id: String,
}

impl Outgoing {
    fn say(&self, message: Say) {
        let (tenant, worker_id) = (self.tenant.clone(), self.worker_id.clone());
        // A stream that is gone is noticed by reading it.
        let _ = self.requests.send(pb::PullTasksRequest {
            tenant,
            worker_id,
            message: Some(message),
        });
    }

    fn grant(&self, count: usize) {
        if count > 0 {
            self.say(Say::Credits(pb::PullCredits {
                count: u32::try_from(count).unwrap_or(u32::MAX),
            }));
        }
    }
}

fn grace_of(drain: &pb::PullDrain) -> Duration {
    if drain.kill {
        return Duration::ZERO;
    }
    let deadline = drain
        .deadline
        .and_then(|deadline| SystemTime::try_from(deadline).ok());
    let left = deadline.map(|at| at.duration_since(SystemTime::now()).unwrap_or_default());
    left.unwrap_or(Duration::from_secs(u64::from(u32::MAX)))
}

pub(super) fn until_renewal(registered: &pb::RegisterWorkerResponse) -> Duration {
    let before = registered
        .renew_before
        .and_then(|before| SystemTime::try_from(before).ok());
    let left = before
        .and_then(|at| at.duration_since(SystemTime::now()).ok())
        .unwrap_or(RENEW_AHEAD * 2);
    left.saturating_sub(RENEW_AHEAD).max(PAUSE_MAX)
}

/// Where a dispatcher was until a moment ago another service may stand by now; who registers again learns better.
fn elsewhere(registered: &pb::RegisterWorkerResponse, status: Status) -> Status {
    match status.code() {
        Code::Unimplemented if !registered.address.is_empty() => {
            Status::unavailable(status.message())
        }
        _ => status,
    }
}

/// Whether repeating cannot help.
pub(super) fn is_final(status: &Status) -> bool {
    let told_to_leave = Error::from(status.clone()).reason() == Some(Reason::InvalidState);
    let codes = [
        Code::Unauthenticated,
        Code::PermissionDenied,
        Code::InvalidArgument,
        Code::Unimplemented,
    ];
    told_to_leave || codes.contains(&status.code())
}
