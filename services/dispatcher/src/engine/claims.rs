//! Choosing tasks and sending their claims to the schedulers that hold the runs.

use std::collections::BTreeMap;

use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::admit_request::Message as ToScheduler;

use super::EngineActor;
use crate::core::{CLAIMS_PER_BATCH_MAX, Claim, SchedulerStreamId};
use crate::{inputs, wire};

impl EngineActor {
    /// Claims every task that may be admitted, in batches per stream. While the schedulers fold
    /// these batches the next messages queue up, so the following batches are larger under load.
    pub(super) fn claim_ready(&mut self) {
        loop {
            let claims = self
                .admission
                .choose(servo_mesh::now(), CLAIMS_PER_BATCH_MAX);
            if claims.is_empty() {
                return;
            }
            let mut batches = BTreeMap::<SchedulerStreamId, Vec<Claim>>::new();
            for claim in claims {
                batches.entry(claim.stream_id).or_default().push(claim);
            }
            batches
                .into_iter()
                .for_each(|(stream_id, claims)| self.send_claims(stream_id, claims));
        }
    }

    fn send_claims(&mut self, stream_id: SchedulerStreamId, claims: Vec<Claim>) {
        self.batch += 1;
        self.metrics.claimed.inc_by(claims.len() as u64);
        self.admission.claims_sent(
            stream_id,
            self.batch,
            claims.iter().map(|claim| claim.attempt_id).collect(),
        );
        claims.iter().for_each(|claim| self.prefetch_inputs(claim));
        let batch = mesh_pb::ClaimBatch {
            number: self.batch,
            claims: claims.into_iter().map(claim_message).collect(),
        };
        if let Some(connection) = self.connections.get(&stream_id) {
            // When the stream is broken its reader sends `Closed`, which marks these claims unsure.
            connection.send(ToScheduler::Claims(batch));
        }
    }

    /// Starts reading the inputs of a task before its claim is answered. Their versions are final
    /// already, because a task becomes ready only after the outcomes it depends on were folded.
    fn prefetch_inputs(&mut self, claim: &Claim) {
        let Some(live) = self.admission.live(claim.attempt_id) else {
            return;
        };
        let Some(stored) = self.plans.get(&live.plan) else {
            return;
        };
        if inputs::needs_any(&stored, claim.task.ordinal) {
            self.input_reader
                .prefetch(claim.attempt_id, stored, claim.task.ordinal);
        }
    }

    /// Stops retiring streams whose claims are all answered.
    pub(super) fn stop_retired(&mut self) {
        for stream_id in &self.retiring {
            if self.admission.has_no_pending_claims(*stream_id)
                && let Some(connection) = self.connections.get(stream_id)
            {
                connection.stop.cancel();
            }
        }
    }
}

fn claim_message(claim: Claim) -> mesh_pb::Claim {
    mesh_pb::Claim {
        tenant: claim.tenant.to_string(),
        run_id: claim.run.to_string(),
        task: Some(wire::task_ref(claim.task)),
        attempt: claim.attempt,
        admission_epoch: claim.admission_epoch.get(),
        mode: wire::dispatch_mode(claim.pushed).into(),
        worker_id: claim.worker.to_string(),
    }
}
