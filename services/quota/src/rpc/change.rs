//! The path of every change of a setting: the tenant's lock, the first answer if there was one, the version, the row,
//! the event and the answer, in one transaction.

use prost::Message;
use servo_mesh::{Caller, Error, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::{Digest, EventId, EventType};
use servo_proto::v1::{self, Actor, QuotaChanged};
use servo_store::{NewEvent, Outcome, TenantTx};
use uuid::Uuid;

use super::context::{Quota, appended, bad, millis, stored};
use crate::core::picture::shard;
use crate::core::text::prose;
use crate::store::{quotas, requests};

const REQUEST_ID_BYTES_MAX: usize = 128;

/// What a caller asked to change, as far as all changes are alike.
pub(super) struct Ask<'a> {
    pub(super) method: &'static str,
    pub(super) caller: &'a Caller,
    pub(super) tenant: String,
    pub(super) request_id: &'a str,
    pub(super) comment: &'a str,
    /// The whole request, encoded.
    pub(super) body: Vec<u8>,
}

pub(super) enum Begun<'a, A> {
    /// It was answered before.
    Answered(A),
    Open(Change<'a>),
}

/// A change under the tenant's lock.
pub(super) struct Change<'a> {
    pub(super) tx: TenantTx,
    pub(super) tenant: String,
    quota: &'a Quota,
    caller: &'a Caller,
    request_id: &'a str,
    comment: &'a str,
    body: Digest,
}

pub(super) async fn begin<'a, A: Message + Default>(
    quota: &'a Quota,
    ask: Ask<'a>,
) -> Result<Begun<'a, A>, Error> {
    check_request_id(ask.request_id)?;
    prose("comment", ask.comment).map_err(bad)?;
    let body = Digest::of([ask.method.as_bytes(), &ask.body].concat());
    let mut tx = quota.begin(&ask.tenant).await?;
    quotas::lock(&mut tx, &ask.tenant).await.map_err(stored)?;
    let first = requests::find(&mut tx, &ask.tenant, ask.request_id)
        .await
        .map_err(stored)?;
    if let Some(first) = first {
        return first_answer(first, &body).map(Begun::Answered);
    }
    let Ask {
        caller,
        tenant,
        request_id,
        comment,
        ..
    } = ask;
    Ok(Begun::Open(Change {
        tx,
        tenant,
        quota,
        caller,
        request_id,
        comment,
        body,
    }))
}

impl Change<'_> {
    /// Appends the event, keeps the answer and commits. The setting's row is written already.
    pub(super) async fn finish<A: Message>(
        mut self,
        subject: &str,
        change: QuotaChanged,
        answer: impl FnOnce(String) -> A,
    ) -> Result<A, Error> {
        let event_id = EventId::new(millis(), rand::random());
        let event = self.event(event_id, subject, change);
        let answer = answer(event_id.to_string());
        let bytes = answer.encode_to_vec();
        let kept = requests::keep(
            &mut self.tx,
            &self.tenant,
            self.request_id,
            &self.body,
            &bytes,
        )
        .await;
        kept.map_err(stored)?;
        let done = self.tx.append(&[event]).await.map_err(appended)?;
        if done.iter().any(|event| event.outcome != Outcome::New) {
            let message = "the ledger knows this version of the setting with other contents";
            return Err(Error::new(Reason::Internal, message));
        }
        self.tx.commit().await.map_err(stored)?;
        self.quota.changed();
        Ok(answer)
    }

    fn event(&self, event_id: EventId, subject: &str, change: QuotaChanged) -> NewEvent {
        let key = IdempotencyKey::quota_changed(subject, change.version);
        let changed_by = Some(Actor {
            principal: self.principal(),
            comment: self.comment.to_owned(),
        });
        let body = v1::event::Body::QuotaChanged(QuotaChanged {
            subject: subject.to_owned(),
            changed_by,
            ..change
        });
        let trace = servo_mesh::current_trace().map(|trace| v1::TraceContext {
            traceparent: trace.to_string(),
            tracestate: String::new(),
        });
        NewEvent {
            event_id: Uuid::from_bytes(*event_id.as_bytes()),
            kind: EventType::QuotaChanged,
            version: 1,
            shard: shard(&self.tenant),
            tenant: self.tenant.clone(),
            workspace: String::new(),
            idempotency_key: key.as_str().to_owned(),
            correlation_id: None,
            causation_id: None,
            payload: v1::Event {
                version: 1,
                trace,
                body: Some(body),
            }
            .encode_to_vec(),
        }
    }

    fn principal(&self) -> String {
        match self.caller.principal.is_empty() {
            true => self.caller.peer.to_string(),
            false => self.caller.principal.clone(),
        }
    }
}

/// The version after a change of `current`; 0 expects nothing.
pub(super) fn next_version(expected: u64, current: u64) -> Result<u64, Error> {
    if expected == 0 || expected == current {
        return Ok(current + 1);
    }
    let message = format!(
        "expected_version is {expected}, the current version is {current}; read it and decide again"
    );
    Err(Error::new(Reason::VersionConflict, message).with("current_version", current.to_string()))
}

fn first_answer<A: Message + Default>(
    first: requests::FirstAnswer,
    body: &Digest,
) -> Result<A, Error> {
    if first.body != body.as_bytes() {
        let message = "request_id was used before with another body; choose a new one";
        return Err(Error::new(Reason::RequestIdReused, message));
    }
    A::decode(first.answer.as_slice()).map_err(|_| {
        Error::new(
            Reason::Internal,
            "the first answer to this request_id cannot be read",
        )
    })
}

fn check_request_id(request_id: &str) -> Result<(), Error> {
    match request_id.len() {
        0 => Err(Error::new(
            Reason::RequestIdRequired,
            "request_id is empty; choose one, so that a repeat is safe",
        )),
        1..=REQUEST_ID_BYTES_MAX if !request_id.contains('\0') => Ok(()),
        length => Err(Error::bad_field(
            "request_id",
            format!(
                "has {length} bytes or a NUL; 1 to {REQUEST_ID_BYTES_MAX} plain ones are allowed"
            ),
        )),
    }
}
