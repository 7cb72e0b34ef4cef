//! Attempts that nobody starts: given back, taken back, or impossible to hand over.

use std::collections::HashMap;

use servo_model::AttemptId;
use servo_proto::v1 as pb;
use servo_proto::v1::admit_request::Message as Say;
use tracing::error;

use super::{EngineLoop, dispatch_id};
use crate::core::{CLAIMS_PER_BATCH_MAX, Live, SourceId, WorkerKey};
use crate::wire;

impl EngineLoop {
    /// Nobody shall start what still waits in the queue for this worker. A killed one gives back what it runs as well: it
    /// learns so from its next beat, which is refused.
    pub(super) fn take_back_pushed(&mut self, worker: &WorkerKey, kill: bool) {
        let pushed = self
            .admission
            .attempts_of(worker)
            .filter(|live| live.pushed);
        let entries: Vec<_> = pushed
            .map(|live| (live.attempt_id, dispatch_id(&self.admission, live)))
            .collect();
        for dispatch in entries.iter().filter_map(|(_, dispatch)| dispatch.as_ref()) {
            self.pushes.drop_entry(dispatch);
        }
        if kill {
            let attempts: Vec<AttemptId> =
                entries.into_iter().map(|(attempt, _)| attempt).collect();
            self.returned(worker, &attempts, true);
        }
    }

    /// Tells the runs' owners, of the worker's own attempts. One that is not told now frees them when nobody starts them
    /// in time.
    pub(super) fn returned(&mut self, worker: &WorkerKey, attempts: &[AttemptId], pushed: bool) {
        let mut batches = HashMap::<SourceId, Vec<pb::ReturnedAttempt>>::new();
        for live in attempts
            .iter()
            .filter_map(|attempt| self.admission.live(*attempt))
        {
            let own = live.may_be_with(worker) && live.pushed == pushed;
            if let Some(source) = self.admission.source_of(live.run).filter(|_| own) {
                batches.entry(source).or_default().push(returned(live));
            }
        }
        for (source, mut entries) in batches {
            let Some(outlet) = self.outlets.get(&source) else {
                continue;
            };
            while !entries.is_empty() {
                let rest = entries.split_off(entries.len().min(CLAIMS_PER_BATCH_MAX));
                let batch = pb::ReturnedBatch {
                    entries: std::mem::replace(&mut entries, rest),
                };
                let _ = outlet.requests.send(pb::AdmitRequest {
                    message: Some(Say::Returned(batch)),
                });
            }
        }
    }

    /// Tells the run's owner that the attempt has failed and why: to try again would end the same way.
    pub(super) fn give_up(&mut self, attempt: AttemptId, why: String) {
        let Some(live) = self.admission.live(attempt) else {
            return;
        };
        error!(%attempt, tenant = %live.tenant, run = %live.run, why, "no envelope");
        let error = pb::TaskError {
            category: pb::ErrorCategory::Configuration.into(),
            message: why,
            r#type: "NoEnvelope".to_owned(),
            ..pb::TaskError::default()
        };
        let entry = pb::ReturnedAttempt {
            error: Some(error),
            ..returned(live)
        };
        let outlet = self
            .admission
            .source_of(live.run)
            .and_then(|source| self.outlets.get(&source));
        if let Some(outlet) = outlet {
            let batch = pb::ReturnedBatch {
                entries: vec![entry],
            };
            let _ = outlet.requests.send(pb::AdmitRequest {
                message: Some(Say::Returned(batch)),
            });
        }
        self.admission.not_sent(attempt);
    }
}

fn returned(live: &Live) -> pb::ReturnedAttempt {
    pb::ReturnedAttempt {
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
