//! What a dispatcher says about a task: judged against the run, and appended only if it counts.

use servo_model::DispatchId;
use servo_model::idempotency::IdempotencyKey;
use servo_model::states::TaskState;
use servo_proto::v1;
use servo_proto::v1::event::Body;

use super::flush::Draft;
use super::lane::Lane;
use super::work::{Claim, Done, DoneAs, Enqueued, RunEvent};
use crate::core::{Refusal, Run};
use crate::wire;

impl Lane {
    pub(super) fn fold_claim(
        &mut self,
        shard: i16,
        claim: &Claim,
        at: i64,
        draft: &mut Draft,
    ) -> Done {
        let done = |verdict: DoneAs| Done {
            verdict,
            event_id: claim.event_id,
            run: None,
        };
        if !self.gates.admits(
            claim.gate,
            claim.admission_shard,
            claim.claim.admission_epoch,
        ) {
            return done(DoneAs::StaleAdmission);
        }
        let run = self
            .shards
            .get(&shard)
            .and_then(|held| held.runs.get(&claim.run_id));
        let Some(run) = run else {
            return done(DoneAs::RunUnknown);
        };
        let offered = |cell| self.gates.next_attempt(cell) == claim.claim.attempt;
        if run
            .cell(claim.task)
            .is_some_and(|cell| cell.state == TaskState::Ready && !offered(cell))
        {
            return done(Refusal::NotReady(claim.claim.attempt).into());
        }
        match event(run, claim) {
            Ok(event) => self.fold_event(shard, &event, at, draft),
            Err(refusal) => done(refusal.into()),
        }
    }

    pub(super) fn fold_enqueued(
        &mut self,
        shard: i16,
        enqueued: &Enqueued,
        at: i64,
        draft: &mut Draft,
    ) -> Done {
        let done = |verdict: DoneAs| Done {
            verdict,
            event_id: enqueued.event_id,
            run: None,
        };
        let run = self
            .shards
            .get(&shard)
            .and_then(|held| held.runs.get(&enqueued.run_id));
        let Some(run) = run else {
            return done(DoneAs::RunUnknown);
        };
        if !self.gates.is_of(enqueued.gate, &run.header.tenant) {
            return done(DoneAs::StaleAdmission);
        }
        let (Some(graph), Some(cell)) = (&run.graph, run.cell(enqueued.task)) else {
            return done(Refusal::TaskUnknown.into());
        };
        let key = wire::task_key(graph, enqueued.task);
        let event = RunEvent {
            tenant: run.header.tenant.to_string(),
            run_id: enqueued.run_id,
            event_id: enqueued.event_id,
            // Of another attempt than the task's active one nothing is appended, so that its number is the right one.
            idempotency_key: IdempotencyKey::dispatch_enqueued(
                &enqueued.run_id,
                &key,
                cell.attempt,
            )
            .to_string(),
            body: Body::DispatchEnqueued(enqueued.entry.clone()),
            trace: None,
        };
        self.fold_event(shard, &event, at, draft)
    }
}

fn event(run: &Run, claim: &Claim) -> Result<RunEvent, Refusal> {
    let Claim {
        run_id,
        task,
        claim: said,
        ..
    } = claim;
    let graph = run.graph.as_ref().ok_or(Refusal::RunIs(run.state))?;
    if run.cell(*task).is_none() {
        return Err(Refusal::TaskUnknown);
    }
    let key = wire::task_key(graph, *task);
    let dispatch = DispatchId::new(run_id, &key, said.attempt);
    Ok(RunEvent {
        tenant: said.tenant.clone(),
        run_id: *run_id,
        event_id: claim.event_id,
        idempotency_key: IdempotencyKey::dispatch_requested(run_id, &key, said.attempt).to_string(),
        body: Body::DispatchRequested(v1::DispatchRequested {
            run_id: said.run_id.clone(),
            task: said.task,
            attempt: said.attempt,
            attempt_id: dispatch.attempt_id().to_string(),
            mode: said.mode,
            worker_id: said.worker_id.clone(),
            ack_timeout: Some(wire::duration(graph.settings(task.ordinal).dispatch_ack_us)),
            admission_epoch: said.admission_epoch,
            fencing_token: u64::from(said.attempt),
        }),
        trace: None,
    })
}
