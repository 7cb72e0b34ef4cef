//! Claims and queue reports of dispatchers: checked against the run, and appended only if they
//! count.

use servo_model::idempotency::IdempotencyKey;
use servo_model::states::TaskState;
use servo_model::{DispatchId, Epoch, ShardId, Timestamp};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;

use super::command::{Applied, Claim, CommandResult, Enqueued, RunEvent};
use super::flush::PendingFlush;
use super::lane::Lane;
use crate::core::{Refusal, Run};
use crate::wire;

impl Lane {
    pub(super) fn fold_claim(
        &mut self,
        shard: ShardId,
        claim: &Claim,
        at: Timestamp,
        pending: &mut PendingFlush,
    ) -> Applied {
        let applied = |result: CommandResult| Applied {
            result,
            event_id: claim.event_id,
            run: None,
        };
        if !self.streams.accepts_claims_of(
            claim.stream,
            claim.admission_shard,
            Epoch::new(claim.message.admission_epoch),
        ) {
            return applied(CommandResult::StaleAdmission);
        }
        let run = self
            .shards
            .get(&shard)
            .and_then(|held| held.runs.get(&claim.run_id));
        let Some(run) = run else {
            return applied(CommandResult::RunUnknown);
        };
        let offered = |task_row| self.streams.next_attempt(task_row) == claim.message.attempt;
        if run
            .task_row(claim.task)
            .is_some_and(|task_row| task_row.state == TaskState::Ready && !offered(task_row))
        {
            return applied(Refusal::TaskNotReady(claim.message.attempt).into());
        }
        match claimed_event(run, claim) {
            Ok(event) => self.fold_event(shard, &event, at, pending),
            Err(refusal) => applied(refusal.into()),
        }
    }

    pub(super) fn fold_enqueued(
        &mut self,
        shard: ShardId,
        enqueued: &Enqueued,
        at: Timestamp,
        pending: &mut PendingFlush,
    ) -> Applied {
        let applied = |result: CommandResult| Applied {
            result,
            event_id: enqueued.event_id,
            run: None,
        };
        let run = self
            .shards
            .get(&shard)
            .and_then(|held| held.runs.get(&enqueued.run_id));
        let Some(run) = run else {
            return applied(CommandResult::RunUnknown);
        };
        if !self
            .streams
            .is_holder_for(enqueued.stream, &run.header.tenant)
        {
            return applied(CommandResult::StaleAdmission);
        }
        let (Some(plan), Some(task_row)) = (&run.plan, run.task_row(enqueued.task)) else {
            return applied(Refusal::TaskUnknown.into());
        };
        let key = plan.task_key(enqueued.task);
        let event = RunEvent {
            tenant: run.header.tenant.clone(),
            run_id: enqueued.run_id,
            event_id: enqueued.event_id,
            // The fold refuses the report of any attempt but the active one, so its number is
            // right.
            idempotency_key: IdempotencyKey::dispatch_enqueued(
                &enqueued.run_id,
                &key,
                task_row.attempt,
            )
            .to_string(),
            body: Body::DispatchEnqueued(enqueued.entry.clone()),
            trace: None,
        };
        self.fold_event(shard, &event, at, pending)
    }
}

fn claimed_event(run: &Run, claim: &Claim) -> Result<RunEvent, Refusal> {
    let Claim {
        tenant,
        run_id,
        task,
        message,
        ..
    } = claim;
    let plan = run.plan.as_ref().ok_or(Refusal::RunIs(run.state))?;
    if run.task_row(*task).is_none() {
        return Err(Refusal::TaskUnknown);
    }
    let key = plan.task_key(*task);
    let dispatch = DispatchId::new(run_id, &key, message.attempt);
    Ok(RunEvent {
        tenant: tenant.clone(),
        run_id: *run_id,
        event_id: claim.event_id,
        idempotency_key: IdempotencyKey::dispatch_requested(run_id, &key, message.attempt)
            .to_string(),
        body: Body::DispatchRequested(pb::DispatchRequested {
            run_id: message.run_id.clone(),
            task: message.task,
            attempt: message.attempt,
            attempt_id: dispatch.attempt_id().to_string(),
            mode: message.mode,
            worker_id: message.worker_id.clone(),
            ack_timeout: Some(wire::duration(plan.settings(task.ordinal).dispatch_ack_us)),
            admission_epoch: message.admission_epoch,
            fencing_token: u64::from(message.attempt),
        }),
        trace: None,
    })
}
