//! Workers that are pushed to, and what is in the queue for them.

use std::collections::HashMap;

use servo_proto::v1 as pb;
use servo_proto::v1::admit_request::Message as Say;

use super::{EngineLoop, dispatch_id};
use crate::core::{SourceId, Update, Worker};
use crate::loops::pushes::{Entry, Reached};

impl EngineLoop {
    pub(super) fn reach(&mut self, workers: Vec<Reached>) {
        let held = |worker: &Worker| {
            worker
                .tenant
                .as_ref()
                .is_none_or(|tenant| self.admission.holds(tenant))
        };
        let mine: Vec<Reached> = workers
            .into_iter()
            .filter(|reached| held(&reached.worker))
            .collect();
        let mut targets = HashMap::new();
        for Reached { worker, target } in mine {
            targets.insert(worker.key(), target);
            self.admission.reach(worker);
        }
        for gone in self.pushes.replace(targets) {
            self.admission.leave(&gone);
        }
    }

    /// Tells the runs' owners. One that is not told now shows the attempt as waiting when it is connected again.
    pub(super) fn enqueued(&mut self, entries: Vec<Entry>) {
        let mut batches = HashMap::<SourceId, Vec<pb::DispatchEnqueued>>::new();
        for entry in entries {
            if let Some(source) = self.admission.source_of(entry.run) {
                batches.entry(source).or_default().push(entry.event());
            }
        }
        for (source, entries) in batches {
            if let Some(outlet) = self.outlets.get(&source) {
                let batch = pb::EnqueuedBatch { entries };
                let _ = outlet.requests.send(pb::AdmitRequest {
                    message: Some(Say::Enqueued(batch)),
                });
            }
        }
    }

    /// Nobody needs to be asked any more to start what ended in the queue.
    pub(super) fn drop_ended(&self, update: &Update) {
        let ended = update
            .ended
            .iter()
            .filter_map(|ended| self.admission.live(ended.attempt_id));
        for dispatch in ended
            .filter(|live| live.pushed)
            .filter_map(|live| dispatch_id(&self.admission, live))
        {
            self.pushes.drop_entry(&dispatch);
        }
    }
}
