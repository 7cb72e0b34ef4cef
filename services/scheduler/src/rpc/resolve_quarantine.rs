//! ResolveQuarantine: whether readers get a version that its checks put in doubt.

use std::sync::Arc;

use servo_mesh::{Caller, Error, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::states::MaterializationState;
use servo_model::{AttemptId, RunId};
use servo_proto::v1;
use servo_proto::v1::event::Body;
use servo_store::query;
use uuid::Uuid;

use super::list_materializations::{Row, show};
use super::task_names::TaskNames;
use super::{Scheduler, answer};
use crate::shards::{Ask, RunEvent, event_id};
use crate::wire;

const RACES_MAX: usize = 5;

pub(super) async fn resolve_quarantine(
    scheduler: &Scheduler,
    caller: &Caller,
    asked: v1::ResolveQuarantineRequest,
) -> Result<v1::ResolveQuarantineResponse, Error> {
    answer::request_id(&asked.request_id)?;
    answer::comment(&asked.comment)?;
    let decided = match asked.decision() {
        v1::QuarantineDecision::Approve => MaterializationState::Promoted,
        v1::QuarantineDecision::Reject => MaterializationState::Rejected,
        v1::QuarantineDecision::Unspecified => {
            return Err(Error::bad_field(
                "decision",
                "is not given; say APPROVE or REJECT",
            ));
        }
    };
    let id: AttemptId = asked
        .materialization_id
        .parse()
        .map_err(|_| not_found(&asked))?;
    let actor = v1::Actor {
        principal: caller.principal.clone(),
        comment: asked.comment.clone(),
    };
    for _ in 0..RACES_MAX {
        let target = Target::find(scheduler, &asked, id).await?;
        if target.is_resolved_as(decided) {
            return target.answer(scheduler, &asked).await;
        }
        target.check(&asked)?;
        let event = target.event(&asked, id, actor.clone());
        let applied = scheduler.route.submit_one(Ask::Event(event)).await?.applied;
        match (applied.acceptance(), applied.refusal()) {
            // What it became is read like every repeat reads it; so is what others decided meanwhile.
            (v1::Acceptance::Folded | v1::Acceptance::Duplicate, _)
            | (_, Reason::VersionConflict | Reason::InvalidState) => {}
            (_, reason) => return Err(Error::new(reason, applied.message)),
        }
    }
    Err(Error::new(
        Reason::VersionConflict,
        "others keep changing this version; read it and try again",
    ))
}

fn not_found(asked: &v1::ResolveQuarantineRequest) -> Error {
    let id = &asked.materialization_id;
    let told = format!(
        "there is no version {id} in this workspace; ListMaterializations names those there are"
    );
    Error::new(Reason::MaterializationNotFound, told).with("materialization_id", id)
}

/// The version as it stands.
struct Target(Row);

impl Target {
    async fn find(
        scheduler: &Scheduler,
        asked: &v1::ResolveQuarantineRequest,
        id: AttemptId,
    ) -> Result<Target, Error> {
        let select = query(include_str!("../store/materialization.sql"))
            .bind(&asked.tenant)
            .bind(&asked.workspace)
            .bind(Uuid::from_bytes(*id.as_bytes()));
        let mut tx = scheduler
            .store
            .requests()
            .begin(&asked.tenant)
            .await
            .map_err(answer::store)?;
        let rows: Vec<Row> = tx.all(select).await.map_err(answer::store)?;
        tx.commit().await.map_err(answer::store)?;
        rows.into_iter()
            .next()
            .map(Target)
            .ok_or_else(|| not_found(asked))
    }

    /// Counts changes, from 1.
    fn version(&self) -> u64 {
        u64::try_from(self.0.5).unwrap_or(0) + 1
    }

    fn is_resolved_as(&self, decided: MaterializationState) -> bool {
        self.0.13.is_some() && self.0.4 == decided.code()
    }

    fn check(&self, asked: &v1::ResolveQuarantineRequest) -> Result<(), Error> {
        let id = &asked.materialization_id;
        let state = MaterializationState::from_code(self.0.4);
        if state != Some(MaterializationState::Quarantined) {
            let state = state.map_or("unknown", MaterializationState::name);
            let told = format!("version {id} is {state}; only a QUARANTINED one is decided about");
            return Err(Error::new(Reason::InvalidState, told).with("state", state));
        }
        if asked.expected_version != 0 && asked.expected_version != self.version() {
            let told = format!(
                "expected_version is {}, but version {id} stands at {}; read it and decide again",
                asked.expected_version,
                self.version()
            );
            return Err(Error::new(Reason::VersionConflict, told)
                .with("version", self.version().to_string()));
        }
        Ok(())
    }

    fn event(
        &self,
        asked: &v1::ResolveQuarantineRequest,
        id: AttemptId,
        actor: v1::Actor,
    ) -> Arc<RunEvent> {
        let run_id = RunId::from_bytes(self.0.9.into_bytes());
        let version = self.version() + 1;
        let output: v1::Output = prost::Message::decode(self.0.8.as_slice()).unwrap_or_default();
        let body = Body::QuarantineResolved(v1::QuarantineResolved {
            run_id: run_id.to_string(),
            materialization_id: id.to_string(),
            asset_key: self.0.1.clone(),
            partition_key: output.partition_key,
            decision: asked.decision,
            version,
            resolved_by: Some(actor),
        });
        Arc::new(RunEvent {
            tenant: asked.tenant.clone(),
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
        asked: &v1::ResolveQuarantineRequest,
    ) -> Result<v1::ResolveQuarantineResponse, Error> {
        let scope = (asked.tenant.as_str(), asked.workspace.as_str());
        let version = show(scheduler, scope, &self.0, &mut TaskNames::default()).await?;
        Ok(v1::ResolveQuarantineResponse {
            materialization: Some(version),
            accepted_event_id: self.0.13.map(wire::ulid).unwrap_or_default(),
        })
    }
}
