//! Attempts that will not be started: returned by the worker, withdrawn, or impossible to deliver.

use std::collections::HashMap;

use servo_model::AttemptId;
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::admit_request::Message as ToScheduler;
use servo_proto::v1 as pb;
use tracing::error;

use super::{EngineActor, dispatch_id};
use crate::core::{CLAIMS_PER_BATCH_MAX, LiveAttempt, SchedulerStreamId, WorkerKey};
use crate::wire;

impl EngineActor {
    /// Removes this worker's entries from the queue. For a killed worker, its running attempts are
    /// reported as returned too; it learns that from its next heartbeat, which is refused.
    pub(super) fn withdraw_pushed(&mut self, worker: &WorkerKey, kill: bool) {
        let pushed = self
            .admission
            .attempts_of(worker)
            .filter(|live| live.pushed);
        let entries: Vec<_> = pushed
            .map(|live| (live.attempt_id, dispatch_id(&self.admission, live)))
            .collect();
        for dispatch in entries.iter().filter_map(|(_, dispatch)| dispatch.as_ref()) {
            self.push_queue.cancel(dispatch);
        }
        if kill {
            let attempts: Vec<AttemptId> =
                entries.into_iter().map(|(attempt, _)| attempt).collect();
            self.report_returned(worker, &attempts, true);
        }
    }

    /// Reports returned attempts of this worker to the schedulers. If a stream is down, the
    /// scheduler frees the attempts when their start deadline passes.
    pub(super) fn report_returned(
        &mut self,
        worker: &WorkerKey,
        attempts: &[AttemptId],
        pushed: bool,
    ) {
        let mut batches = HashMap::<SchedulerStreamId, Vec<mesh_pb::ReturnedAttempt>>::new();
        for live in attempts
            .iter()
            .filter_map(|attempt| self.admission.live(*attempt))
        {
            let own = live.belongs_to(worker) && live.pushed == pushed;
            if let Some(stream_id) = self.admission.stream_of(live.run).filter(|_| own) {
                batches.entry(stream_id).or_default().push(returned(live));
            }
        }
        for (stream_id, mut entries) in batches {
            let Some(connection) = self.connections.get(&stream_id) else {
                continue;
            };
            while !entries.is_empty() {
                let rest = entries.split_off(entries.len().min(CLAIMS_PER_BATCH_MAX));
                let batch = mesh_pb::ReturnedBatch {
                    entries: std::mem::replace(&mut entries, rest),
                };
                connection.send(ToScheduler::Returned(batch));
            }
        }
    }

    /// Reports to the scheduler that the attempt has failed. A retry would fail in the same way.
    pub(super) fn fail_attempt(&mut self, attempt: AttemptId, reason: String) {
        let Some(live) = self.admission.live(attempt) else {
            return;
        };
        error!(%attempt, tenant = %live.tenant, run = %live.run, reason, "no envelope can be built for an attempt");
        let error = pb::TaskError {
            category: pb::ErrorCategory::Configuration.into(),
            message: reason,
            r#type: "NoEnvelope".to_owned(),
            ..pb::TaskError::default()
        };
        let entry = mesh_pb::ReturnedAttempt {
            error: Some(error),
            ..returned(live)
        };
        let connection = self
            .admission
            .stream_of(live.run)
            .and_then(|stream_id| self.connections.get(&stream_id));
        if let Some(connection) = connection {
            let batch = mesh_pb::ReturnedBatch {
                entries: vec![entry],
            };
            connection.send(ToScheduler::Returned(batch));
        }
        self.admission.envelope_not_sent(attempt);
    }
}

fn returned(live: &LiveAttempt) -> mesh_pb::ReturnedAttempt {
    mesh_pb::ReturnedAttempt {
        tenant: live.tenant.to_string(),
        run_id: live.run.to_string(),
        task: Some(wire::task_ref(live.task)),
        attempt_id: live.attempt_id.to_string(),
        worker_id: live
            .worker
            .map_or_else(String::new, |worker| worker.to_string()),
        error: None,
    }
}
