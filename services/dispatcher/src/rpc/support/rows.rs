//! Rows of the store as API messages.

use prost::Message as _;
use servo_model::WorkerId;
use servo_proto::{proto_time, v1 as pb};

use crate::store::{PauseRow, WorkerRow};

pub(in crate::rpc) fn listed_worker(row: &WorkerRow) -> pb::Worker {
    pb::Worker {
        worker_id: WorkerId::from_bytes(*row.worker_id.as_bytes()).to_string(),
        info: pb::WorkerInfo::decode(&*row.info).ok(),
        state: row.state.into(),
        active_attempts: row.active_attempts.unsigned_abs(),
        seen_time: Some(proto_time(row.seen_at)),
        register_time: Some(proto_time(row.registered_at)),
        last_command: row.command.into(),
        version: row.version.unsigned_abs(),
    }
}

pub(in crate::rpc) fn dispatch_pause(row: &PauseRow) -> pb::DispatchPause {
    pb::DispatchPause {
        pause_id: row.pause_id.clone(),
        tenant: row.tenant.to_string(),
        workspace: row.workspace.clone(),
        pool: row.pool.clone(),
        version: row.version.unsigned_abs(),
        requested_by: Some(pb::Actor {
            principal: row.principal.clone(),
            comment: row.comment.clone(),
        }),
        start_time: Some(proto_time(row.started_at)),
    }
}
