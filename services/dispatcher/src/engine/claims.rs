//! Choosing tasks and sending their claims to the schedulers that hold the runs.

use std::collections::BTreeMap;

use servo_proto::v1 as pb;
use servo_proto::v1::admit_request::Message as ToScheduler;

use super::EngineActor;
use crate::core::{CLAIMS_PER_BATCH_MAX, Chosen, SourceId};
use crate::{inputs, wire};

impl EngineActor {
    /// Claims every task that may be admitted, in batches per stream. While these batches are in
    /// flight the next messages queue up, so the following batches are larger under load.
    pub(super) fn claim_ready(&mut self) {
        loop {
            let chosen = self
                .admission
                .choose(servo_mesh::now(), CLAIMS_PER_BATCH_MAX);
            if chosen.is_empty() {
                return;
            }
            let mut batches = BTreeMap::<SourceId, Vec<Chosen>>::new();
            for claim in chosen {
                batches.entry(claim.source).or_default().push(claim);
            }
            batches
                .into_iter()
                .for_each(|(source, claims)| self.send_claims(source, claims));
        }
    }

    fn send_claims(&mut self, source: SourceId, claims: Vec<Chosen>) {
        self.batch += 1;
        self.metrics.claimed.inc_by(claims.len() as u64);
        self.admission.claims_sent(
            source,
            self.batch,
            claims.iter().map(|claim| claim.attempt_id).collect(),
        );
        claims.iter().for_each(|claim| self.prefetch_inputs(claim));
        let batch = pb::ClaimBatch {
            number: self.batch,
            claims: claims.into_iter().map(claim).collect(),
        };
        if let Some(connection) = self.connections.get(&source) {
            // When the stream is broken its reader sends `Closed`, which marks these claims unsure.
            connection.send(ToScheduler::Claims(batch));
        }
    }

    /// Starts reading the inputs of a task while its claim is in flight. Their versions are final
    /// already, because a task becomes ready only after the outcomes it depends on were folded.
    fn prefetch_inputs(&mut self, chosen: &Chosen) {
        let Some(live) = self.admission.live(chosen.attempt_id) else {
            return;
        };
        let Some(stored) = self.plans.get(&live.plan) else {
            return;
        };
        if inputs::needs_any(&stored, chosen.task.ordinal) {
            self.input_reader
                .prefetch(chosen.attempt_id, stored, chosen.task.ordinal);
        }
    }

    /// Stops retiring streams whose claims are all answered.
    pub(super) fn stop_retired(&mut self) {
        for source in &self.retiring {
            if self.admission.has_no_pending_claims(*source)
                && let Some(connection) = self.connections.get(source)
            {
                connection.stop.cancel();
            }
        }
    }
}

fn claim(chosen: Chosen) -> pb::Claim {
    pb::Claim {
        tenant: chosen.tenant.to_string(),
        run_id: chosen.run.to_string(),
        task: Some(wire::task_ref(chosen.task)),
        attempt: chosen.attempt,
        admission_epoch: chosen.admission_epoch.get(),
        mode: wire::dispatch_mode(chosen.pushed).into(),
        worker_id: chosen.worker.to_string(),
    }
}
