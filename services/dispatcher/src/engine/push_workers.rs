//! The engine's handling of workers that are pushed to.

use std::collections::HashMap;

use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::admit_request::Message as ToScheduler;
use servo_proto::v1 as pb;

use super::{EngineActor, PushEndpoint, QueueEntry, dispatch_id};
use crate::core::{SchedulerStreamId, Update, Worker};

/// A worker that receives pushes.
pub(crate) struct PushWorker {
    pub(crate) worker: Worker,
    pub(crate) endpoint: PushEndpoint,
}

impl EngineActor {
    pub(super) fn set_push_workers(&mut self, workers: Vec<PushWorker>) {
        let held = |worker: &Worker| {
            worker
                .tenant
                .tenant()
                .is_none_or(|tenant| self.admission.holds(tenant))
        };
        let held_here: Vec<PushWorker> = workers
            .into_iter()
            .filter(|push_worker| held(&push_worker.worker))
            .collect();
        let mut endpoints = HashMap::new();
        for PushWorker { worker, endpoint } in held_here {
            endpoints.insert(worker.key(), endpoint);
            self.admission.refresh_push_worker(worker);
        }
        for gone in self.push_queue.replace_endpoints(endpoints) {
            self.admission.disconnect_worker(&gone);
        }
    }

    /// Reports enqueued envelopes to the schedulers. If a stream is down, the next snapshot lists
    /// the attempt as unsent, and the envelope is enqueued and reported again.
    pub(super) fn report_enqueued(&mut self, entries: Vec<QueueEntry>) {
        let mut batches = HashMap::<SchedulerStreamId, Vec<pb::DispatchEnqueued>>::new();
        for entry in entries {
            if let Some(stream_id) = self.admission.stream_of(entry.run) {
                batches
                    .entry(stream_id)
                    .or_default()
                    .push(entry.enqueued_event());
            }
        }
        for (stream_id, entries) in batches {
            if let Some(connection) = self.connections.get(&stream_id) {
                let batch = mesh_pb::EnqueuedBatch { entries };
                connection.send(ToScheduler::Enqueued(batch));
            }
        }
    }

    /// Removes queue entries of attempts that have ended.
    pub(super) fn cancel_ended_pushes(&self, update: &Update) {
        let ended = update
            .ended
            .iter()
            .filter_map(|ended| self.admission.live(ended.attempt_id));
        for dispatch in ended
            .filter(|live| live.pushed)
            .filter_map(|live| dispatch_id(&self.admission, live))
        {
            self.push_queue.cancel(&dispatch);
        }
    }
}
