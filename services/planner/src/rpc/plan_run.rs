//! PlanRun: what TriggerRun would do, without doing or storing it.

use servo_mesh::{Error, Reason};
use servo_model::plan::PlanId;
use servo_proto::v1::{PlanRunRequest, PlanRunResponse};

use super::context::{Planner, scope, stored, working};
use crate::core::plan::{Order, make};
use crate::core::{plan_diff, plan_page};
use crate::store::plans;

const TASKS_DEFAULT: usize = 100;
const TASKS_MAX: usize = 10_000;

pub(super) async fn plan_run(planner: &Planner, request: PlanRunRequest) -> Result<PlanRunResponse, Error> {
    let scope = scope(&request)?;
    let spec = request.spec.ok_or_else(|| Error::bad_field("spec", "is missing; say what to run"))?;
    let request_fingerprint = servo_proto::request_fingerprint(&spec)
        .map_err(|error| Error::bad_field("spec", error.to_string()))?
        .to_string();
    let mut tx = planner.begin(&scope).await?;
    let found = planner.deployment(&mut tx, &scope, &spec.deployment_id).await?;
    let moment = planner.moment(&mut tx, &scope, &found.graph).await?;
    let compared = match request.compare_plan_id.is_empty() {
        true => None,
        false => {
            let id = plan_id(&request.compare_plan_id)?;
            let plan = plans::find(&mut tx, &scope, &id).await.map_err(stored)?;
            Some(plan.ok_or_else(|| not_found(&request.compare_plan_id))?)
        }
    };
    drop(tx);
    let made = working(move || {
        let order = Order {
            tenant: &scope.tenant,
            workspace: &scope.workspace,
            deployment_id: &found.id,
            spec: &spec,
            reused: &[],
            only: &[],
            max_tasks: 0,
        };
        make(&found.graph, &order, &moment)
    });
    let mut plan = made.await??.plan;
    let task_count = u32::try_from(plan.tasks.len()).unwrap_or(u32::MAX);
    let diff = compared.map(|before| plan_diff::diff(&before, &plan));
    let shown = match request.max_tasks as usize {
        0 => TASKS_DEFAULT,
        count => count.min(TASKS_MAX),
    };
    plan_page::keep(&mut plan, 0..shown);
    Ok(PlanRunResponse { plan: Some(plan), task_count, up_to_date_count: 0, request_fingerprint, diff })
}

pub(super) fn plan_id(text: &str) -> Result<PlanId, Error> {
    text.parse()
        .map_err(|error: servo_model::ids::IdError| Error::new(Reason::PlanNotFound, error.to_string()))
}

pub(super) fn not_found(plan_id: &str) -> Error {
    let shown = &plan_id[..plan_id.floor_char_boundary(64)];
    Error::new(Reason::PlanNotFound, format!("there is no plan {shown} in this workspace"))
}
