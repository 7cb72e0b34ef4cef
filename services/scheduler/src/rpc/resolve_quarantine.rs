//! ResolveQuarantine: approves or rejects a materialization whose checks failed.

use std::sync::Arc;

use servo_mesh::{Caller, Error, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::states::MaterializationState;
use servo_model::{AttemptId, RunId, TenantId};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;

use super::Scheduler;
use super::support::{errors, parse};
use crate::forward::ForwardableCommand;
use crate::reads::{TaskNames, materializations};
use crate::shards::{RunEvent, event_id};
use crate::store::materializations as store;
use crate::store::materializations::ListedMaterialization;
use crate::wire;

const RACES_MAX: usize = 5;

pub(super) async fn resolve_quarantine(
    scheduler: &Scheduler,
    caller: &Caller,
    request: pb::ResolveQuarantineRequest,
) -> Result<pb::ResolveQuarantineResponse, Error> {
    let tenant = parse::tenant(&request.tenant)?;
    parse::request_id(&request.request_id)?;
    parse::comment(&request.comment)?;
    let decided = match request.decision() {
        pb::QuarantineDecision::Approve => MaterializationState::Promoted,
        pb::QuarantineDecision::Reject => MaterializationState::Rejected,
        pb::QuarantineDecision::Unspecified => {
            return Err(Error::bad_field(
                "decision",
                "is missing; use APPROVE or REJECT",
            ));
        }
    };
    let id: AttemptId = request
        .materialization_id
        .parse()
        .map_err(|_| not_found(&request))?;
    let actor = pb::Actor {
        principal: caller.principal.clone(),
        comment: request.comment.clone(),
    };
    for _ in 0..RACES_MAX {
        let target = Target::find(scheduler, &tenant, &request, id).await?;
        if target.is_resolved_as(decided) {
            return target.answer(scheduler, &request).await;
        }
        target.check(&request)?;
        let event = target.event(&request, id, actor.clone());
        let applied = scheduler
            .router
            .submit_one(ForwardableCommand::Event(event))
            .await?
            .applied;
        match (applied.acceptance(), applied.refusal()) {
            // The next iteration reads the result, or the decision of a concurrent call.
            (pb::Acceptance::Folded | pb::Acceptance::Duplicate, _)
            | (_, Reason::VersionConflict | Reason::InvalidState) => {}
            (_, reason) => return Err(Error::new(reason, applied.message)),
        }
    }
    Err(Error::new(
        Reason::VersionConflict,
        "the version keeps changing concurrently; read it and try again",
    ))
}

fn not_found(request: &pb::ResolveQuarantineRequest) -> Error {
    let id = &request.materialization_id;
    let message = format!(
        "there is no version {id} in this workspace; ListMaterializations lists the versions"
    );
    Error::new(Reason::MaterializationNotFound, message).with("materialization_id", id)
}

/// The stored version.
struct Target {
    tenant: TenantId,
    row: ListedMaterialization,
}

impl Target {
    async fn find(
        scheduler: &Scheduler,
        tenant: &TenantId,
        request: &pb::ResolveQuarantineRequest,
        id: AttemptId,
    ) -> Result<Target, Error> {
        let mut tx = scheduler
            .reads
            .store
            .requests()
            .begin(tenant)
            .await
            .map_err(errors::store)?;
        let scope = (tenant, request.workspace.as_str());
        let row = store::find(&mut tx, scope, id)
            .await
            .map_err(errors::store)?;
        tx.commit().await.map_err(errors::store)?;
        let tenant = tenant.clone();
        row.map(|row| Target { tenant, row })
            .ok_or_else(|| not_found(request))
    }

    /// Counts changes, from 1.
    fn version(&self) -> u64 {
        u64::try_from(self.row.version).unwrap_or(0) + 1
    }

    fn is_resolved_as(&self, decided: MaterializationState) -> bool {
        self.row.resolved_event.is_some() && self.row.state == decided.code()
    }

    fn check(&self, request: &pb::ResolveQuarantineRequest) -> Result<(), Error> {
        let id = &request.materialization_id;
        let state = MaterializationState::from_code(self.row.state);
        if state != Some(MaterializationState::Quarantined) {
            let state = state.map_or("unknown", MaterializationState::name);
            let message =
                format!("version {id} is {state}; only a QUARANTINED version can be resolved");
            return Err(Error::new(Reason::InvalidState, message).with("state", state));
        }
        if request.expected_version != 0 && request.expected_version != self.version() {
            let message = format!(
                "expected_version is {}, but version {id} is at {}; read it and decide again",
                request.expected_version,
                self.version()
            );
            return Err(Error::new(Reason::VersionConflict, message)
                .with("version", self.version().to_string()));
        }
        Ok(())
    }

    fn event(
        &self,
        request: &pb::ResolveQuarantineRequest,
        id: AttemptId,
        actor: pb::Actor,
    ) -> Arc<RunEvent> {
        let run_id = RunId::from_bytes(self.row.run_id.into_bytes());
        let version = self.version() + 1;
        let output: pb::Output =
            prost::Message::decode(self.row.output.as_slice()).unwrap_or_default();
        let body = Body::QuarantineResolved(pb::QuarantineResolved {
            run_id: run_id.to_string(),
            materialization_id: id.to_string(),
            asset_key: self.row.asset_key.clone(),
            partition_key: output.partition_key,
            decision: request.decision,
            version,
            resolved_by: Some(actor),
        });
        Arc::new(RunEvent {
            tenant: self.tenant.clone(),
            run_id,
            event_id: event_id(),
            idempotency_key: IdempotencyKey::quarantine_resolved(&id, version)
                .as_str()
                .to_owned(),
            body,
            trace: None,
        })
    }

    async fn answer(
        &self,
        scheduler: &Scheduler,
        request: &pb::ResolveQuarantineRequest,
    ) -> Result<pb::ResolveQuarantineResponse, Error> {
        let scope = (&self.tenant, request.workspace.as_str());
        let names = &mut TaskNames::default();
        let version = materializations::to_proto(&scheduler.reads, scope, &self.row, names).await?;
        Ok(pb::ResolveQuarantineResponse {
            materialization: Some(version),
            accepted_event_id: self.row.resolved_event.map(wire::ulid).unwrap_or_default(),
        })
    }
}
