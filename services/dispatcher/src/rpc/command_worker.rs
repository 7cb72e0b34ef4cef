//! DrainWorker and KillWorker: the row and its event in one transaction; whoever holds the tenant tells the worker.

use std::time::Duration;

use prost::Message as _;
use servo_mesh::{Error, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::{EventType, WorkerId};
use servo_proto::v1 as pb;
use servo_store::{NewEvent, Timestamp};
use uuid::Uuid;

use super::list_workers::worker;
use super::{Dispatcher, new_event_id, not_appended, tenant_of, text, unavailable, worker_of};
use crate::store::{self, WorkerRow};
use crate::wire;

/// Whoever waits longer wants a pause.
const GRACE_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);

struct Command {
    tenant: String,
    worker: WorkerId,
    command: pb::WorkerCommand,
    expected_version: u64,
    cut_off: Option<f64>,
    by: pb::Actor,
}

impl Dispatcher {
    pub(super) async fn drain(
        &self,
        principal: String,
        request: pb::DrainWorkerRequest,
    ) -> Result<pb::DrainWorkerResponse, Error> {
        let grace = request.grace.map(grace).transpose()?;
        let (worker, accepted_event_id) = self
            .command(Command {
                worker: worker_of(&request.worker_id)?,
                tenant: request.tenant,
                command: pb::WorkerCommand::Drain,
                expected_version: request.expected_version,
                cut_off: grace.map(|grace| wire::now() + grace.as_secs_f64()),
                by: pb::Actor {
                    principal,
                    comment: request.comment,
                },
            })
            .await?;
        Ok(pb::DrainWorkerResponse {
            worker: Some(worker),
            accepted_event_id,
        })
    }

    pub(super) async fn kill(
        &self,
        principal: String,
        request: pb::KillWorkerRequest,
    ) -> Result<pb::KillWorkerResponse, Error> {
        let (worker, accepted_event_id) = self
            .command(Command {
                worker: worker_of(&request.worker_id)?,
                tenant: request.tenant,
                command: pb::WorkerCommand::Kill,
                expected_version: request.expected_version,
                cut_off: None,
                by: pb::Actor {
                    principal,
                    comment: request.comment,
                },
            })
            .await?;
        Ok(pb::KillWorkerResponse {
            worker: Some(worker),
            accepted_event_id,
        })
    }

    /// A command that the worker got already, or one that goes less far, changes nothing.
    async fn command(&self, command: Command) -> Result<(pb::Worker, String), Error> {
        text::comment(&command.by.comment)?;
        let mut tx = self
            .store
            .requests()
            .begin(&command.tenant)
            .await
            .map_err(unavailable)?;
        let row = store::lock_worker(&mut tx, &command.tenant, command.worker)
            .await
            .map_err(unavailable)?;
        let mut row = row.ok_or_else(|| {
            Error::new(
                Reason::WorkerNotFound,
                format!("there is no worker {}", command.worker),
            )
        })?;
        check_version(command.expected_version, row.version)?;
        if row.command < command.command as i16 {
            let event = next(&mut row, &command)?;
            store::command_worker(&mut tx, &command.tenant, &row)
                .await
                .map_err(unavailable)?;
            tx.append(&[event]).await.map_err(not_appended)?;
            tx.commit().await.map_err(unavailable)?;
            self.commanded.ring();
            row.state = if row.state <= 2 {
                pb::WorkerState::Draining as i16
            } else {
                row.state
            };
        }
        let event = row
            .event_id
            .map(|id| servo_model::EventId::from_bytes(*id.as_bytes()).to_string());
        Ok((worker(&row), event.unwrap_or_default()))
    }
}

fn grace(given: prost_types::Duration) -> Result<Duration, Error> {
    let good = Duration::try_from(given)
        .ok()
        .filter(|grace| *grace <= GRACE_MAX);
    let told = || {
        format!(
            "is below 0 or above {} seconds; write one between them",
            GRACE_MAX.as_secs()
        )
    };
    good.ok_or_else(|| Error::bad_field("grace", told()))
}

pub(super) fn check_version(expected: u64, version: i64) -> Result<(), Error> {
    if expected == 0 || expected == version.unsigned_abs() {
        return Ok(());
    }
    let message = format!(
        "expected_version is {expected}, but the version is {version}; read it and try again"
    );
    Err(Error::new(Reason::VersionConflict, message))
}

/// The row after the command, and the event that tells of it.
fn next(row: &mut WorkerRow, command: &Command) -> Result<NewEvent, Error> {
    let event_id = Uuid::from_bytes(*new_event_id().as_bytes());
    row.version += 1;
    row.command = command.command as i16;
    row.event_id = Some(event_id);
    row.cut_off_at = command
        .cut_off
        .map(|at| Timestamp::from_unix_us((at * 1e6) as i64));
    let body = pb::WorkerCommanded {
        worker_id: command.worker.to_string(),
        command: command.command.into(),
        version: row.version.unsigned_abs(),
        deadline: command.cut_off.map(wire::timestamp),
        requested_by: Some(command.by.clone()),
    };
    let key = IdempotencyKey::worker_commanded(&command.worker, row.version.unsigned_abs());
    let event = new_event(&command.tenant, EventType::WorkerCommanded, event_id, &key);
    Ok(NewEvent {
        payload: payload(pb::event::Body::WorkerCommanded(body)),
        ..event?
    })
}

/// An event of the dispatch stream without its payload. What concerns everybody stands on the first shard.
pub(super) fn new_event(
    tenant: &str,
    kind: EventType,
    event_id: Uuid,
    key: &IdempotencyKey,
) -> Result<NewEvent, Error> {
    let shard = match tenant {
        super::EVERYBODY => 0,
        tenant => tenant_of(tenant)?.admission_shard(),
    };
    Ok(NewEvent {
        event_id,
        kind,
        version: 1,
        shard,
        tenant: tenant.to_owned(),
        workspace: String::new(),
        idempotency_key: key.as_str().to_owned(),
        correlation_id: None,
        causation_id: None,
        payload: Vec::new(),
    })
}

pub(super) fn payload(body: pb::event::Body) -> Vec<u8> {
    pb::Event {
        version: 1,
        trace: None,
        body: Some(body),
    }
    .encode_to_vec()
}
