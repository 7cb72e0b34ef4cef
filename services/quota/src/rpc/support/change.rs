//! Changes a setting in one transaction: the tenant's lock, the first answer if the request was
//! answered before, the version, the row, the event and the answer.

use prost::Message;
use servo_mesh::{Caller, Error, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::{Digest, EventId, EventType, TenantScope};
use servo_proto::v1 as pb;
use servo_proto::v1::{Actor, QuotaChanged};
use servo_store::{AppendResult, NewEvent, TenantTx};
use uuid::Uuid;

use super::errors::{append_error, field_error, store_error};
use super::ids::new_event_id;
use super::parse::check_request_id;
use crate::core::limits_snapshot::shard;
use crate::core::text::check_text;
use crate::rpc::Quota;
use crate::store::{quotas, requests};

/// The part of a change request that all changes have in common.
pub(crate) struct ChangeRequest<'a> {
    pub(crate) method: &'static str,
    pub(crate) caller: &'a Caller,
    pub(crate) tenant: TenantScope,
    pub(crate) request_id: &'a str,
    pub(crate) comment: &'a str,
    /// The whole request, encoded.
    pub(crate) body: Vec<u8>,
}

pub(crate) enum Begun<'a, A> {
    /// The request was answered before.
    Answered(A),
    Open(Change<'a>),
}

/// An open change, under the tenant's lock.
pub(crate) struct Change<'a> {
    pub(crate) tx: TenantTx,
    pub(crate) tenant: TenantScope,
    quota: &'a Quota,
    caller: &'a Caller,
    request_id: &'a str,
    comment: &'a str,
    body: Digest,
}

pub(crate) async fn begin<'a, A: Message + Default>(
    quota: &'a Quota,
    request: ChangeRequest<'a>,
) -> Result<Begun<'a, A>, Error> {
    check_request_id(request.request_id)?;
    check_text("comment", request.comment).map_err(field_error)?;
    let body = Digest::of([request.method.as_bytes(), &request.body].concat());
    let mut tx = quota.begin_in(&request.tenant).await?;
    quotas::lock(&mut tx, &request.tenant)
        .await
        .map_err(store_error)?;
    let first = requests::find(&mut tx, &request.tenant, request.request_id)
        .await
        .map_err(store_error)?;
    if let Some(first) = first {
        return first_answer(first, &body).map(Begun::Answered);
    }
    let ChangeRequest {
        caller,
        tenant,
        request_id,
        comment,
        ..
    } = request;
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
    /// Appends the event, stores the answer and commits. The caller has already written the
    /// setting's row.
    pub(crate) async fn finish<A: Message>(
        mut self,
        subject: &str,
        change: QuotaChanged,
        answer: impl FnOnce(String) -> A,
    ) -> Result<A, Error> {
        let event_id = new_event_id();
        let event = self.event(event_id, subject, change);
        let answer = answer(event_id.to_string());
        let bytes = answer.encode_to_vec();
        let stored = requests::insert(
            &mut self.tx,
            &self.tenant,
            self.request_id,
            &self.body,
            &bytes,
        )
        .await;
        stored.map_err(store_error)?;
        let appended = self.tx.append(&[event]).await.map_err(append_error)?;
        if appended
            .iter()
            .any(|event| event.result != AppendResult::New)
        {
            let message = "the ledger already has this version of the setting with other contents";
            return Err(Error::new(Reason::Internal, message));
        }
        self.tx.commit().await.map_err(store_error)?;
        self.quota.notify_changed();
        Ok(answer)
    }

    fn event(&self, event_id: EventId, subject: &str, change: QuotaChanged) -> NewEvent {
        let key = IdempotencyKey::quota_changed(subject, change.version);
        let changed_by = Some(Actor {
            principal: self.principal(),
            comment: self.comment.to_owned(),
        });
        let body = pb::event::Body::QuotaChanged(QuotaChanged {
            subject: subject.to_owned(),
            changed_by,
            ..change
        });
        let trace = servo_mesh::current_trace().map(|trace| pb::TraceContext {
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
            payload: pb::Event {
                version: 1,
                trace,
                body: Some(body),
            }
            .encode_to_vec(),
        }
    }

    fn principal(&self) -> String {
        if self.caller.principal.is_empty() {
            self.caller.peer.to_string()
        } else {
            self.caller.principal.clone()
        }
    }
}

/// Returns the version that follows `current`; 0 accepts any current version.
pub(crate) fn next_version(expected: u64, current: u64) -> Result<u64, Error> {
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
