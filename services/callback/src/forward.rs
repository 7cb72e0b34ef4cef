//! Starts and outcomes on their way to the ledger: in batches to the holders of their shards, or, when none answers, by
//! an append of our own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prost::Message;
use servo_mesh::{Error, Mesh, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::{AttemptId, EventType, RunId};
use servo_proto::v1;
use servo_proto::v1::attempt_report::Report;
use servo_proto::v1::event::Body;
use servo_store::{Ledger, NewEvent, Outcome, Store};
use tokio::sync::{Semaphore, mpsc, oneshot};
use ulid::Ulid;
use uuid::Uuid;

use crate::Config;
use crate::holders::{Holder, Holders};

const REPORTS_PER_CALL_MAX: usize = 256;
/// While one call waits for the disk, another may be under way.
const CALLS_AT_ONCE: usize = 3;
/// How long a holder may take to answer; a flush under load takes tens of milliseconds.
const CALL_PATIENCE: Duration = Duration::from_secs(2);
/// How long a shard may be without a holder before we append by ourselves.
const HOLDER_PATIENCE: Duration = Duration::from_millis(100);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub(crate) type Verdict = Result<v1::AttemptVerdict, Error>;

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Forward {
    inbox: mpsc::UnboundedSender<Item>,
}

/// One report and who waits for its verdict.
struct Item {
    run: RunId,
    attempt: AttemptId,
    report: v1::AttemptReport,
    since: Instant,
    reply: oneshot::Sender<Verdict>,
}

type Call = (Holder, Vec<Item>);

struct Sender {
    holders: Holders,
    ledger: Ledger,
    again: mpsc::UnboundedSender<Item>,
}

impl Forward {
    pub(crate) fn start(mesh: Arc<Mesh<Config>>, store: &Store) -> Forward {
        let (inbox, items) = mpsc::unbounded_channel();
        let sender = Sender {
            holders: Holders::new(&mesh, store),
            ledger: store.ledger().clone(),
            again: inbox.clone(),
        };
        tokio::spawn(run(Arc::new(sender), items));
        Forward { inbox }
    }

    /// Answers once the report is folded, or recorded, or refused.
    pub(crate) async fn report(
        &self,
        run: RunId,
        attempt: AttemptId,
        mut report: v1::AttemptReport,
    ) -> Verdict {
        report.event_id = Ulid::generate().to_string();
        let (reply, verdict) = oneshot::channel();
        let item = Item {
            run,
            attempt,
            report,
            since: Instant::now(),
            reply,
        };
        let stopping = || {
            Error::new(
                Reason::NotReady,
                "the callback service is stopping; repeat the call",
            )
        };
        self.inbox.send(item).map_err(|_| stopping())?;
        verdict.await.map_err(|_| stopping())?
    }
}

async fn run(sender: Arc<Sender>, mut items: mpsc::UnboundedReceiver<Item>) {
    let calls = Arc::new(Semaphore::new(CALLS_AT_ONCE));
    while let Some(first) = items.recv().await {
        let Ok(permit) = calls.clone().acquire_owned().await else {
            return;
        };
        tokio::task::yield_now().await;
        let mut batch = vec![first];
        while batch.len() < REPORTS_PER_CALL_MAX
            && let Ok(more) = items.try_recv()
        {
            batch.push(more);
        }
        let sender = sender.clone();
        tokio::spawn(async move {
            sender.send(batch).await;
            drop(permit);
        });
    }
}

impl Sender {
    async fn send(&self, batch: Vec<Item>) {
        let (calls, homeless) = self.by_holder(batch);
        futures::future::join_all(
            calls
                .into_values()
                .map(|(holder, items)| self.call(holder, items)),
        )
        .await;
        if !homeless.is_empty() {
            self.without_holder(homeless).await;
        }
    }

    /// What goes to each address, and what has nowhere to go.
    fn by_holder(&self, batch: Vec<Item>) -> (HashMap<String, Call>, Vec<Item>) {
        let (mut calls, mut homeless) = (HashMap::new(), Vec::new());
        for item in batch {
            match self.holders.of(item.run.shard()) {
                Some(holder) => {
                    let call = calls
                        .entry(holder.address.clone())
                        .or_insert_with(|| (holder, Vec::new()));
                    call.1.push(item);
                }
                None => homeless.push(item),
            }
        }
        (calls, homeless)
    }

    async fn call(&self, holder: Holder, items: Vec<Item>) {
        let reports = items.iter().map(|item| item.report.clone()).collect();
        let mut client = holder.client.clone();
        let call = client.report_attempts(v1::ReportAttemptsRequest { reports });
        let answer = tokio::time::timeout(CALL_PATIENCE, call).await;
        let verdicts = match answer {
            Ok(Ok(answer)) => answer.into_inner().verdicts,
            // Whether it was folded is unknown; the event id tells when it is asked again.
            Ok(Err(_)) | Err(_) => Vec::new(),
        };
        let mut verdicts = verdicts.into_iter();
        let mut unanswered = Vec::new();
        for item in items {
            match verdicts.next() {
                Some(verdict)
                    if !matches!(verdict.refusal(), Reason::NotHolder | Reason::NotReady) =>
                {
                    let _ = item.reply.send(Ok(verdict));
                }
                _ => unanswered.push(item),
            }
        }
        if !unanswered.is_empty() {
            self.without_holder(unanswered).await;
        }
    }

    /// Looks for a holder for a moment, then records without one.
    async fn without_holder(&self, items: Vec<Item>) {
        tokio::time::sleep(LOOK_AGAIN).await;
        if let Err(error) = self.holders.look().await {
            tracing::warn!(%error, "the holders of shards could not be read");
        }
        let (patient, late): (Vec<Item>, Vec<Item>) = items
            .into_iter()
            .partition(|item| item.since.elapsed() < HOLDER_PATIENCE);
        for item in patient {
            let _ = self.again.send(item);
        }
        futures::future::join_all(late.into_iter().map(|item| self.record(item))).await;
    }

    async fn record(&self, item: Item) {
        if needs_holder(&item.report) {
            let message = "the outcome waits for whoever looks up whether readers keep a good version; repeat the call";
            return drop(item.reply.send(Err(Error::new(Reason::NotReady, message))));
        }
        let is_start = matches!(item.report.report, Some(Report::Started(_)));
        let appended = match new_event(&item) {
            Ok(event) => self.ledger.append(vec![event]).await,
            Err(error) => return drop(item.reply.send(Err(error))),
        };
        let verdict = |acceptance: v1::Acceptance, event_id: String| v1::AttemptVerdict {
            acceptance: acceptance.into(),
            event_id,
            ..Default::default()
        };
        let ulid = |id: Uuid| Ulid::from(id.as_u128()).to_string();
        let answer = match appended.map(|answers| answers.into_iter().next()) {
            Ok(Some(appended)) => Ok(match appended.outcome {
                Outcome::New => verdict(v1::Acceptance::Recorded, item.report.event_id.clone()),
                // Whether it was folded is not known here, and a start that counts only then must not seem to.
                Outcome::Duplicate { event_id } if is_start => {
                    verdict(v1::Acceptance::Recorded, ulid(event_id))
                }
                Outcome::Duplicate { event_id } => {
                    verdict(v1::Acceptance::Duplicate, ulid(event_id))
                }
                Outcome::Conflict { event_id } => v1::AttemptVerdict {
                    refusal: Reason::OutcomeConflict.into(),
                    message: "the attempt was reported before, with another outcome".to_owned(),
                    ..verdict(v1::Acceptance::Refused, ulid(event_id))
                },
            }),
            Ok(None) => Err(Error::new(Reason::Internal, "the ledger gave no answer")),
            Err(error) => Err(Error::new(Reason::NotReady, error.to_string())),
        };
        let _ = item.reply.send(answer);
    }
}

/// Whether an outcome counts only with what the holder of its shard looks up: of a quarantined one, whether an earlier good
/// version stands. Recorded without that, everything downstream would be skipped.
fn needs_holder(report: &v1::AttemptReport) -> bool {
    let Some(Report::Finished(finished)) = &report.report else {
        return false;
    };
    finished.outcome() == v1::Outcome::Succeeded && finished.gating() == v1::Gating::Quarantine
}

fn new_event(item: &Item) -> Result<NewEvent, Error> {
    let malformed = || Error::new(Reason::Internal, "a report lost its body");
    let (kind, key, body) = match item.report.report.clone().ok_or_else(malformed)? {
        Report::Started(started) => (
            EventType::TaskStarted,
            IdempotencyKey::task_started(&item.attempt),
            Body::TaskStarted(started),
        ),
        Report::Finished(finished) => (
            EventType::TaskFinished,
            IdempotencyKey::task_finished(&item.attempt),
            Body::TaskFinished(finished),
        ),
    };
    let event_id: Ulid = item.report.event_id.parse().map_err(|_| malformed())?;
    Ok(NewEvent {
        event_id: Uuid::from_u128(event_id.into()),
        kind,
        version: 1,
        shard: item.run.shard(),
        tenant: item.report.tenant.clone(),
        workspace: item.report.workspace.clone(),
        idempotency_key: key.to_string(),
        correlation_id: Some(Uuid::from_bytes(*item.run.as_bytes())),
        causation_id: None,
        // Without the call's trace: every call has another, and a repeat must be the same event.
        payload: v1::Event {
            version: 1,
            trace: None,
            body: Some(body),
        }
        .encode_to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_quarantined_success_needs_the_holder_of_its_shard() {
        use v1::{Gating, Outcome};
        let finished = |outcome: Outcome, gating: Gating| {
            let (outcome, gating) = (outcome.into(), gating.into());
            Report::Finished(v1::TaskFinished {
                outcome,
                gating,
                ..Default::default()
            })
        };
        let check = |report: Report, needs: bool| {
            let report = v1::AttemptReport {
                report: Some(report),
                ..Default::default()
            };
            assert_eq!(needs_holder(&report), needs, "{report:?}");
        };
        check(finished(Outcome::Succeeded, Gating::Quarantine), true);
        check(finished(Outcome::Succeeded, Gating::Block), false);
        check(finished(Outcome::Succeeded, Gating::Allow), false);
        check(finished(Outcome::Failed, Gating::Quarantine), false);
        check(Report::Started(v1::TaskStarted::default()), false);
    }
}
