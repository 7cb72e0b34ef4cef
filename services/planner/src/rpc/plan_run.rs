//! PlanRun: what TriggerRun would do, without doing or storing it.

use servo_mesh::{Error, Reason};
use servo_model::plan::PlanId;
use servo_proto::v1::{PlanRunRequest, PlanRunResponse, RunSpec};

use super::context::{Planner, scope, stored, working};
use crate::core::plan::{Order, draft};
use crate::core::{plan_diff, plan_page};
use crate::store::{Scope, plans, statuses};

const TASKS_DEFAULT: usize = 100;
const TASKS_MAX: usize = 10_000;

pub(super) async fn plan_run(
    planner: &Planner,
    request: PlanRunRequest,
) -> Result<PlanRunResponse, Error> {
    let scope = scope(&request)?;
    let spec = request
        .spec
        .ok_or_else(|| Error::bad_field("spec", "is missing; say what to run"))?;
    let request_fingerprint = servo_proto::request_fingerprint(&spec)
        .map_err(|error| Error::bad_field("spec", error.to_string()))?
        .to_string();
    let max_tasks = max_tasks(planner, &scope.tenant)?;
    let mut tx = planner.begin(&scope).await?;
    let found = planner
        .deployment(&mut tx, &scope, &spec.deployment_id)
        .await?;
    let moment = planner.moment(&mut tx, &scope, &found.graph).await?;
    let compared = match request.compare_plan_id.is_empty() {
        true => None,
        false => {
            let id = plan_id(&request.compare_plan_id)?;
            let plan = plans::find(&mut tx, &scope, &id).await.map_err(stored)?;
            Some(plan.ok_or_else(|| not_found(&request.compare_plan_id))?)
        }
    };
    let (deployment_id, graph) = (found.id, found.graph);
    let (asked, asked_scope) = (spec.clone(), scope.clone());
    let (id, deployed) = (deployment_id.clone(), graph.clone());
    let drafted = working(move || {
        draft(
            &deployed,
            &order(&asked_scope, &id, &asked, max_tasks),
            &moment,
        )
    })
    .await?;
    let drafted = drafted.map_err(|refusal| over_quota(&scope.tenant, refusal.into()))?;
    let statuses = statuses::of_one(&mut tx, &scope, &drafted.places())
        .await
        .map_err(stored)?;
    drop(tx);
    let made = working(move || {
        drafted.finish(
            &graph,
            &order(&scope, &deployment_id, &spec, max_tasks),
            &statuses,
        )
    });
    let mut plan = made.await??.plan;
    let up_to_date_count = count(plan.tasks.iter().filter(|task| task.up_to_date).count());
    let task_count = count(plan.tasks.len());
    let diff = compared.map(|before| plan_diff::diff(&before, &plan));
    let shown = match request.max_tasks as usize {
        0 => TASKS_DEFAULT,
        count => count.min(TASKS_MAX),
    };
    plan_page::keep(&mut plan, 0..shown);
    Ok(PlanRunResponse {
        plan: Some(plan),
        task_count,
        up_to_date_count,
        request_fingerprint,
        diff,
    })
}

/// What TriggerRun lets a run of the tenant have; 0 for no cap of its own.
fn max_tasks(planner: &Planner, tenant: &str) -> Result<u32, Error> {
    match planner.max_tasks(tenant) {
        Some(0) => {
            let sentence = "max_tasks_per_run is 0, so the tenant runs nothing; raise the limit";
            Err(over_quota(
                tenant,
                Error::new(Reason::QuotaExceeded, sentence),
            ))
        }
        max => Ok(max.unwrap_or(0)),
    }
}

/// Says whose limit it is.
fn over_quota(tenant: &str, error: Error) -> Error {
    if error.reason() != Reason::QuotaExceeded {
        return error;
    }
    let sentence = error.to_string();
    error.over_quota(format!("tenants/{tenant}"), sentence)
}

fn order<'a>(
    scope: &'a Scope,
    deployment_id: &'a str,
    spec: &'a RunSpec,
    max_tasks: u32,
) -> Order<'a> {
    Order {
        tenant: &scope.tenant,
        workspace: &scope.workspace,
        deployment_id,
        spec,
        reused: &[],
        only: &[],
        max_tasks,
    }
}

fn count(tasks: usize) -> u32 {
    u32::try_from(tasks).unwrap_or(u32::MAX)
}

pub(super) fn plan_id(text: &str) -> Result<PlanId, Error> {
    text.parse().map_err(|error: servo_model::ids::IdError| {
        Error::new(Reason::PlanNotFound, error.to_string())
    })
}

pub(super) fn not_found(plan_id: &str) -> Error {
    let shown = &plan_id[..plan_id.floor_char_boundary(64)];
    Error::new(
        Reason::PlanNotFound,
        format!("there is no plan {shown} in this workspace"),
    )
}
