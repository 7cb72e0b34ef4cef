//! Materializations as the API shows them.

use prost::Message as _;
use servo_mesh::{Error, Reason};
use servo_model::{AttemptId, RunId, TenantId};
use servo_proto::{proto_time, v1 as pb};

use super::{Reads, TaskNames};
use crate::store::materializations::ListedMaterialization;

pub(crate) async fn to_proto(
    reads: &Reads,
    scope: (&TenantId, &str),
    row: &ListedMaterialization,
    names: &mut TaskNames,
) -> Result<pb::Materialization, Error> {
    let unreadable = |_| Error::new(Reason::Internal, "a stored version cannot be read");
    let output = pb::Output::decode(row.output.as_slice()).map_err(unreadable)?;
    let resolved_by = row
        .resolved_by
        .as_deref()
        .map(pb::Actor::decode)
        .transpose()
        .map_err(unreadable)?;
    let task = names
        .find(
            reads,
            scope,
            row.plan_id.as_deref(),
            (row.ordinal, row.item),
        )
        .await?;
    Ok(pb::Materialization {
        materialization_id: AttemptId::from_bytes(*row.attempt_id.as_bytes()).to_string(),
        gating: output.gating,
        output: Some(output),
        state: row.state.into(),
        run_id: RunId::from_bytes(*row.run_id.as_bytes()).to_string(),
        task_id: task.map_or_else(String::new, |task| task.id().to_string()),
        deployment_id: row.deployment_id.clone().unwrap_or_default(),
        record_time: Some(proto_time(row.recorded_at)),
        promote_time: row.promoted_at.map(proto_time),
        resolved_by,
        version: u64::try_from(row.version).unwrap_or(0) + 1,
    })
}
