//! DrainWorker and KillWorker: writes the command's row and its event in one transaction. The
//! holder of the tenant's admission shard then sends the command to the worker.

use servo_mesh::{Caller, Error, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::{EventType, TenantScope, Timestamp, WorkerId};
use servo_proto::{proto_time, v1 as pb};
use servo_store::NewEvent;
use uuid::Uuid;

use super::events::{new_event, new_event_id, payload};
use super::parse::{check_comment, check_version};
use super::rows::listed_worker;
use super::workspaces::{check_workspaces, visible_to};
use crate::rpc::Dispatcher;
use crate::store::{self, WorkerRow};
use servo_service::errors;

pub(in crate::rpc) struct Command {
    pub(in crate::rpc) tenant: TenantScope,
    pub(in crate::rpc) worker: WorkerId,
    pub(in crate::rpc) command: pb::WorkerCommand,
    pub(in crate::rpc) expected_version: u64,
    /// When attempts that still run are stopped; `None` for never.
    pub(in crate::rpc) cut_off: Option<Timestamp>,
    pub(in crate::rpc) requested_by: pb::Actor,
}

/// Records the command. A command that the worker has already, or a weaker one, changes nothing.
pub(in crate::rpc) async fn command_worker(
    dispatcher: &Dispatcher,
    caller: &Caller,
    command: Command,
) -> Result<(pb::Worker, String), Error> {
    check_comment(&command.requested_by.comment)?;
    let mut tx = dispatcher
        .store
        .requests()
        .begin_in(&command.tenant)
        .await
        .map_err(errors::store)?;
    let row = store::lock_worker(&mut tx, &command.tenant, command.worker)
        .await
        .map_err(errors::store)?;
    // A worker of other workspaces is answered like one that does not exist.
    let visible = row.filter(|row| visible_to(caller, listed_worker(row)).is_some());
    let mut row = visible.ok_or_else(|| {
        Error::new(
            Reason::WorkerNotFound,
            format!("there is no worker {}", command.worker),
        )
    })?;
    check_workspaces(caller, &listed_worker(&row).info.unwrap_or_default())?;
    check_version(command.expected_version, row.version)?;
    if row.command < command.command as i16 {
        let event = apply(&mut row, &command);
        store::command_worker(&mut tx, &command.tenant, &row)
            .await
            .map_err(errors::store)?;
        tx.append(&[event]).await.map_err(errors::append)?;
        tx.commit().await.map_err(errors::store)?;
        dispatcher.commands_changed.ring();
        if row.state <= pb::WorkerState::Draining as i16 {
            row.state = pb::WorkerState::Draining as i16;
        }
    }
    let event = row
        .event_id
        .map(|id| servo_model::EventId::from_bytes(*id.as_bytes()).to_string());
    Ok((listed_worker(&row), event.unwrap_or_default()))
}

/// Applies the command to the row and returns the event that records it.
fn apply(row: &mut WorkerRow, command: &Command) -> NewEvent {
    let event_id = Uuid::from_bytes(*new_event_id().as_bytes());
    row.version += 1;
    row.command = command.command as i16;
    row.event_id = Some(event_id);
    row.cut_off_at = command.cut_off;
    let body = pb::WorkerCommanded {
        worker_id: command.worker.to_string(),
        command: command.command.into(),
        version: row.version.unsigned_abs(),
        deadline: command.cut_off.map(proto_time),
        requested_by: Some(command.requested_by.clone()),
    };
    let key = IdempotencyKey::worker_commanded(&command.worker, row.version.unsigned_abs());
    NewEvent {
        payload: payload(pb::event::Body::WorkerCommanded(body)),
        ..new_event(&command.tenant, EventType::WorkerCommanded, event_id, &key)
    }
}
