//! The pull worker: registration, pulling with credits, and draining.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use servo_proto::v1 as pb;
use servo_proto::v1::pull_tasks_request::Message as Outbound;
use servo_proto::v1::pull_tasks_response::Message as Inbound;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};
use tracing::{debug, info};

use super::attempt::{Attempt, Handler};
use super::envelopes::{Seen, Verify};
use super::reports::Reports;
use super::{clock, run};
use crate::client::Client;
use crate::error::{Error, Reason};

/// Ended attempts that the worker has not noticed yet; further ones wait.
const ENDED_QUEUED_MAX: usize = 1_024;
/// Requests that the dispatcher has not read yet; the worker waits with more.
const REQUESTS_QUEUED_MAX: usize = 256;

/// At this many unanswered reports the worker takes no more attempts.
const REPORTS_OPEN_MAX: usize = 4_096;
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How often an idle stream is kept keepalive.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const RENEW_AHEAD: Duration = Duration::from_secs(60);
/// How long attempts may take to end when the worker is drained.
const DRAIN_GRACE: Duration = Duration::from_secs(30);

/// The identity and the capabilities of a worker.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    pub(super) tenant: String,
    pub(super) info: pb::WorkerInfo,
    pub(super) worker_id: String,
    pub(super) drain_grace: Duration,
    pub(super) callbacks: Vec<Client>,
}

impl WorkerConfig {
    /// A worker with a new id. The tenant `-` serves all tenants, if an operator allows it.
    pub fn new(tenant: impl Into<String>, info: pb::WorkerInfo) -> WorkerConfig {
        let worker_id = ulid::Ulid::generate().to_string();
        let callbacks = Vec::new();
        WorkerConfig {
            tenant: tenant.into(),
            info,
            worker_id,
            drain_grace: DRAIN_GRACE,
            callbacks,
        }
    }

    /// Sets the worker id, for a worker that keeps its id across restarts.
    #[must_use]
    pub fn worker_id(self, id: impl Into<String>) -> WorkerConfig {
        WorkerConfig {
            worker_id: id.into(),
            ..self
        }
    }

    #[must_use]
    pub fn drain_grace(self, grace: Duration) -> WorkerConfig {
        WorkerConfig {
            drain_grace: grace,
            ..self
        }
    }

    /// Adds another instance of the callback service, used when the previous one does not respond.
    #[must_use]
    pub fn fallback_callback(mut self, callback: Client) -> WorkerConfig {
        self.callbacks.push(callback);
        self
    }

    /// Starts the reports to `first`, with the configured fallbacks.
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

/// A worker process. ResponseFuture handler runs all its attempts.
pub struct Worker<H> {
    dispatcher: Client,
    config: WorkerConfig,
    session: Arc<str>,
    handler: Arc<H>,
    reports: Reports,
    drain: CancellationToken,
    /// Cancelled to give back all running attempts.
    interrupt: CancellationToken,
    running: HashMap<String, Attempt>,
    ended: (mpsc::Sender<String>, mpsc::Receiver<String>),
    seen: Seen,
}

/// Stops a worker from outside.
#[derive(Debug, Clone)]
pub struct WorkerHandle {
    pub(super) drain: CancellationToken,
}

impl WorkerHandle {
    /// Takes no more attempts, finishes the running ones, and then stops.
    pub fn drain(&self) {
        self.drain.cancel();
    }
}

/// Why a stream of envelopes ended.
enum End {
    /// Register again and reconnect.
    Reconnect,
    /// The worker has been drained.
    Drained,
}

impl<H: Handler> Worker<H> {
    /// Through the gateway both clients are the same; without it they are clients of the two
    /// services.
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
            drain: CancellationToken::new(),
            interrupt: CancellationToken::new(),
            running: HashMap::new(),
            ended: mpsc::channel(ENDED_QUEUED_MAX),
            seen: Seen::default(),
        }
    }

    pub fn handle(&self) -> WorkerHandle {
        WorkerHandle {
            drain: self.drain.clone(),
        }
    }

    pub fn session(&self) -> &str {
        &self.session
    }

    /// Works until it is drained. Fails only when the server finally refuses the worker.
    pub async fn run(mut self) -> Result<(), Error> {
        let mut pause = PAUSE_MIN;
        loop {
            let begun = tokio::time::Instant::now();
            let ended = self.serve().await;
            match ended {
                // Waits until all reports are delivered, because the server may be unavailable for
                // a while.
                Ok(End::Drained) => {
                    self.reports.wait_below(1).await;
                    return Ok(());
                }
                Ok(End::Reconnect) => {}
                Err(status) if is_final(&status) => return Err(status.into()),
                Err(status) => debug!(%status, "the envelope stream broke; reconnecting"),
            }
            pause = if begun.elapsed() > PAUSE_MAX {
                PAUSE_MIN
            } else {
                (pause * 2).min(PAUSE_MAX)
            };
            let pause = tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..1.0)));
            self.drain.run_until_cancelled(pause).await;
        }
    }

    /// Registers, connects to the assigned dispatcher, and works until the stream ends.
    async fn serve(&mut self) -> Result<End, Status> {
        let drain = self.drain.clone();
        let Some(registered) = drain.run_until_cancelled(self.register()).await else {
            return Ok(self.drain_without_stream().await);
        };
        let registered = registered?;
        let client = match registered.address.as_str() {
            "" => self.dispatcher.clone(),
            address => self
                .dispatcher
                .at(address)
                .map_err(|error| Status::invalid_argument(error.to_string()))?,
        };
        let (requests, outgoing) = mpsc::channel(REQUESTS_QUEUED_MAX);
        self.remove_ended();
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
        stream.send(Outbound::Open(open)).await;
        let mut dispatcher = client.dispatcher();
        let opening = dispatcher.pull_tasks(ReceiverStream::new(outgoing));
        let Some(opened) = drain.run_until_cancelled(opening).await else {
            return Ok(self.drain_without_stream().await);
        };
        let mut responses = opened
            .map_err(|status| retry_if_moved(&registered, status))?
            .into_inner();
        let left = self.pull(&registered, &stream, &mut responses).await?;
        let Some((grace, comment)) = left else {
            return Ok(End::Reconnect);
        };
        let comment = comment.to_owned();
        stream
            .send(Outbound::Leave(pb::PullLeave { comment }))
            .await;
        self.finish_running(grace, Some(&mut responses)).await;
        // The server ends the stream when it has recorded the departure.
        drop(stream);
        let _ = tokio::time::timeout(PAUSE_MAX, async {
            while let Ok(Some(_)) = responses.message().await {}
        })
        .await;
        Ok(End::Drained)
    }

    /// Drains while there is no stream to announce it on.
    async fn drain_without_stream(&mut self) -> End {
        self.finish_running(self.config.drain_grace, None).await;
        End::Drained
    }

    async fn register(&self) -> Result<pb::RegisterWorkerResponse, Status> {
        self.config.register(&self.dispatcher, &self.session).await
    }

    /// Works until the stream ends (`None`), or until the worker must drain: returns the grace
    /// period and the reason.
    async fn pull(
        &mut self,
        registered: &pb::RegisterWorkerResponse,
        stream: &Outgoing,
        responses: &mut Streaming<pb::PullTasksResponse>,
    ) -> Result<Option<(Duration, &'static str)>, Status> {
        let verify = Verify::new(registered);
        let renew = tokio::time::sleep(until_renewal(registered));
        let mut keepalive = tokio::time::interval(KEEPALIVE_INTERVAL);
        tokio::pin!(renew);
        let drain = self.drain.clone();
        let mut ended = Vec::new();
        loop {
            tokio::select! {
                count = self.ended.1.recv_many(&mut ended, usize::MAX) => {
                    ended.drain(..).for_each(|attempt| { self.running.remove(&attempt); });
                    self.reports.wait_below(REPORTS_OPEN_MAX).await;
                    stream.grant(count).await;
                }
                response = responses.message() => match response?.and_then(|response| response.message) {
                    Some(Inbound::Envelopes(batch)) => {
                        let refused = self.start_all(batch, &verify);
                        stream.grant(refused).await;
                    }
                    Some(Inbound::Cancels(cancels)) => self.cancel(&cancels),
                    Some(Inbound::Drain(drain)) => return Ok(Some((grace_of(&drain), "drained by the dispatcher"))),
                    Some(Inbound::Moved(_)) | None => return Ok(None),
                    Some(Inbound::Idle(_)) => {}
                },
                () = &mut renew => {
                    let again = self.register().await?;
                    renew.set(tokio::time::sleep(until_renewal(&again)));
                }
                _ = keepalive.tick() => {
                    stream.send(Outbound::Credits(pb::PullCredits { count: 0 })).await;
                }
                () = drain.cancelled() => return Ok(Some((self.config.drain_grace, "the process ends"))),
            }
        }
    }

    /// Starts attempts and returns how many envelopes were not accepted; their credits are granted
    /// again.
    fn start_all(&mut self, batch: pb::EnvelopeBatch, verify: &Verify) -> usize {
        let refused = batch
            .envelopes
            .iter()
            .filter(|signed| !self.start(signed, verify));
        // `count` drives the lazy iterator and thereby starts the attempts.
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
        super::spawn(async move {
            run::run(handler, attempt, reports).await;
            let _ = ended.send(id).await;
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

    fn remove_ended(&mut self) {
        while let Ok(attempt) = self.ended.1.try_recv() {
            self.running.remove(&attempt);
        }
    }

    /// Waits until no attempt runs; after the grace period the rest is given back. Cancels that
    /// arrive in this time are applied.
    async fn finish_running(
        &mut self,
        grace: Duration,
        mut responses: Option<&mut Streaming<pb::PullTasksResponse>>,
    ) {
        info!(running = self.running.len(), ?grace, "draining");
        let grace_over = tokio::time::sleep(grace);
        tokio::pin!(grace_over);
        self.remove_ended();
        while !self.running.is_empty() {
            tokio::select! {
                () = &mut grace_over, if !self.interrupt.is_cancelled() => self.interrupt.cancel(),
                Some(attempt) = self.ended.1.recv() => { self.running.remove(&attempt); }
                message = next(&mut responses) => match message {
                    Some(Inbound::Cancels(cancels)) => self.cancel(&cancels),
                    Some(Inbound::Drain(drain)) if drain.kill => self.interrupt.cancel(),
                    Some(_) => {}
                    None => responses = None,
                },
            }
        }
    }
}

/// The next message; without a stream it never resolves.
async fn next(responses: &mut Option<&mut Streaming<pb::PullTasksResponse>>) -> Option<Inbound> {
    match responses {
        Some(responses) => responses.message().await.ok().flatten()?.message,
        None => std::future::pending().await,
    }
}

/// The sending half of the stream.
struct Outgoing {
    requests: mpsc::Sender<pb::PullTasksRequest>,
    tenant: String,
    worker_id: String,
}

impl Outgoing {
    /// Waits while the dispatcher does not read.
    async fn send(&self, message: Outbound) {
        let request = pb::PullTasksRequest {
            tenant: self.tenant.clone(),
            worker_id: self.worker_id.clone(),
            message: Some(message),
        };
        // A closed stream is detected by reading from it.
        let _ = self.requests.send(request).await;
    }

    async fn grant(&self, count: usize) {
        if count > 0 {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            self.send(Outbound::Credits(pb::PullCredits { count }))
                .await;
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
    let left = deadline.map(|at| at.duration_since(clock::now()).unwrap_or_default());
    left.unwrap_or(Duration::from_secs(u64::from(u32::MAX)))
}

pub(super) fn until_renewal(registered: &pb::RegisterWorkerResponse) -> Duration {
    let before = registered
        .renew_before
        .and_then(|before| SystemTime::try_from(before).ok());
    let left = before
        .and_then(|at| at.duration_since(clock::now()).ok())
        .unwrap_or(RENEW_AHEAD * 2);
    left.saturating_sub(RENEW_AHEAD).max(PAUSE_MAX)
}

/// The address of a dispatcher may belong to another service by now; a new registration returns the
/// right address.
fn retry_if_moved(registered: &pb::RegisterWorkerResponse, status: Status) -> Status {
    match status.code() {
        Code::Unimplemented if !registered.address.is_empty() => {
            Status::unavailable(status.message())
        }
        _ => status,
    }
}

/// Whether a repeat cannot succeed.
pub(super) fn is_final(status: &Status) -> bool {
    let must_stop = Error::from(status.clone()).reason() == Some(Reason::InvalidState);
    let codes = [
        Code::Unauthenticated,
        Code::PermissionDenied,
        Code::InvalidArgument,
        Code::Unimplemented,
    ];
    must_stop || codes.contains(&status.code())
}
