//! Building the envelopes of accepted claims and handing them to workers.

use servo_mesh::continue_trace;
use servo_model::AttemptId;
use tracing::{Span, debug_span};

use super::{EngineActor, InputReader, dispatch_id};
use crate::core::{Effect, LiveAttempt, WorkerKey};
use crate::envelope::NoEnvelope;
use crate::inputs::{self, EnvelopeInputs};
use crate::stored_plan::StoredPlan;

impl EngineActor {
    /// Carries out what admission decided, including what follows from doing so.
    pub(super) fn run_effects(&mut self) {
        loop {
            let effects = self.admission.take_effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                match effect {
                    Effect::Deliver { worker, attempt } => self.deliver(&worker, attempt),
                    Effect::Cancel { worker, attempt } => self.cancel(&worker, attempt),
                    Effect::LoadPlan(plan) => {
                        if let Some(stored) = self.plans.get(&plan) {
                            self.admission
                                .plan_loaded(&plan, &stored.admission, servo_mesh::now());
                        }
                    }
                }
            }
        }
    }

    pub(super) fn deliver(&mut self, worker: &WorkerKey, attempt: AttemptId) {
        self.deliver_with(worker, attempt, None);
    }

    pub(super) fn inputs_resolved(&mut self, resolved: Vec<(AttemptId, EnvelopeInputs)>) {
        for (attempt, resolved) in resolved {
            if let Some((worker, resolved)) = self.input_reader.resolved(attempt, resolved) {
                self.deliver_with(&worker, attempt, Some(resolved));
            }
        }
    }

    /// Sends the attempt's envelope. Returns without sending when the plan or the inputs must be
    /// read first (the engine calls this again when they arrive) or when the worker is no longer
    /// connected; its reconnect or the start deadline decides. `resolved` are the inputs, if they
    /// were read already.
    fn deliver_with(
        &mut self,
        worker: &WorkerKey,
        attempt: AttemptId,
        resolved: Option<EnvelopeInputs>,
    ) {
        let Some(live) = self.admission.live(attempt) else {
            return;
        };
        // Cancelled while its plan or inputs were read.
        if live.cancelling {
            return self.admission.envelope_not_sent(attempt);
        }
        let endpoint = self.push_queue.endpoint(worker);
        let key = endpoint
            .map(|endpoint| *endpoint.key())
            .or_else(|| self.worker_streams.key(worker));
        let Some(key) = key else { return };
        let Some(stored) = self.plans.get_for(&live.plan, worker.clone(), attempt) else {
            return;
        };
        let resolved =
            resolved.or_else(|| read_inputs(&mut self.input_reader, worker, live, &stored));
        let Some(resolved) = resolved else { return };
        let _dispatch = dispatch_span(live, &stored).entered();
        let signed = self
            .signer
            .envelope(&stored, live, &resolved, &key, servo_mesh::now());
        let envelope = match signed {
            Ok(envelope) => envelope,
            Err(NoEnvelope::TooLarge(_)) if resolved.inputs.has_inline() => {
                let uri = self.signer.inputs_uri(live);
                return self
                    .input_reader
                    .store_list(worker.clone(), attempt, uri, resolved);
            }
            Err(error) => return self.fail_attempt(attempt, error.to_string()),
        };
        match (endpoint, dispatch_id(&self.admission, live)) {
            (Some(endpoint), Some(dispatch)) => {
                self.push_queue
                    .enqueue(live, &dispatch, endpoint, &envelope);
            }
            _ => self.worker_streams.send(worker, envelope),
        }
    }

    /// Stops an attempt. Of a worker that is pushed to, only the queue entry is removed here; if it
    /// has started the attempt, it learns of the cancel from the answer to its next heartbeat.
    fn cancel(&mut self, worker: &WorkerKey, attempt: AttemptId) {
        match self.admission.live(attempt) {
            Some(live) if live.pushed => {
                if let Some(dispatch) = dispatch_id(&self.admission, live) {
                    self.push_queue.cancel(&dispatch);
                }
            }
            Some(_) | None => self.worker_streams.cancel(worker, attempt),
        }
    }
}

/// Returns what the task reads, or `None` when it must be read first.
fn read_inputs(
    input_reader: &mut InputReader,
    worker: &WorkerKey,
    live: &LiveAttempt,
    stored: &std::sync::Arc<StoredPlan>,
) -> Option<EnvelopeInputs> {
    let ordinal = live.task.ordinal;
    if !inputs::needs_any(stored, ordinal) {
        return Some(EnvelopeInputs::NONE);
    }
    input_reader.take_or_read(worker.clone(), live.attempt_id, stored.clone(), ordinal)
}

fn dispatch_span(live: &LiveAttempt, stored: &StoredPlan) -> Span {
    let task = stored.task(live.task.ordinal);
    let span = debug_span!(
        "servo.dispatch_task",
        tenant_id = %live.tenant,
        run_id = %live.run,
        attempt_id = %live.attempt_id,
        task_id = stored.admission.key(live.task).map(|key| tracing::field::display(key.id())),
        asset_key = stored.asset_key(live.task.ordinal),
        partition_key = task.map(|task| task.partition_key.as_str())
    );
    let traceparent = live.details.as_ref().map_or("", |details| &details.trace.0);
    continue_trace(&span, traceparent);
    span
}
