//! PlanRun: returns the plan that TriggerRun would make, without storing or starting anything.

use servo_mesh::{Error, Reason};
use servo_model::TenantId;
use servo_proto::v1::{PlanRunRequest, PlanRunResponse, RunSpec};

use super::Planner;
use super::support::blocking::run_blocking;
use super::support::errors::store_error;
use super::support::parse::{parse_plan_id, plan_not_found, scope};
use crate::core::plan::{PlanRequest, draft};
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
        .ok_or_else(|| Error::bad_field("spec", "is missing; name what to run"))?;
    let request_fingerprint = servo_proto::request_fingerprint(&spec)
        .map_err(|error| Error::bad_field("spec", error.to_string()))?
        .to_string();
    let max_tasks = max_tasks(planner, &scope.tenant)?;
    let mut tx = planner.begin(&scope).await?;
    let found = planner
        .deployment(&mut tx, &scope, &spec.deployment_id)
        .await?;
    let moment = planner.moment(&mut tx, &scope, &found.graph).await?;
    let compared = if request.compare_plan_id.is_empty() {
        None
    } else {
        let id = parse_plan_id(&request.compare_plan_id)?;
        let plan = plans::find(&mut tx, &scope, &id)
            .await
            .map_err(store_error)?;
        Some(plan.ok_or_else(|| plan_not_found(&request.compare_plan_id))?)
    };
    let (deployment_id, graph) = (found.id, found.graph);
    let draft_inputs = (
        graph.clone(),
        scope.clone(),
        deployment_id.clone(),
        spec.clone(),
    );
    let drafted = run_blocking(move || {
        let (graph, scope, deployment_id, spec) = draft_inputs;
        let request = plan_request(&scope, &deployment_id, &spec, max_tasks);
        draft(&graph, &request, &moment)
    })
    .await?;
    let drafted = drafted.map_err(|refusal| over_quota(&scope.tenant, refusal.into()))?;
    let statuses = statuses::of_partitions(&mut tx, &scope, &drafted.partitions())
        .await
        .map_err(store_error)?;
    drop(tx);
    let built = run_blocking(move || {
        drafted.finish(
            &graph,
            &plan_request(&scope, &deployment_id, &spec, max_tasks),
            &statuses,
        )
    });
    let mut plan = built.await??.plan;
    let up_to_date_count = count(plan.tasks.iter().filter(|task| task.up_to_date).count());
    let task_count = count(plan.tasks.len());
    let diff = compared.map(|before| plan_diff::diff(&before, &plan));
    let tasks_shown = match request.max_tasks as usize {
        0 => TASKS_DEFAULT,
        count => count.min(TASKS_MAX),
    };
    plan_page::keep(&mut plan, 0..tasks_shown);
    Ok(PlanRunResponse {
        plan: Some(plan),
        task_count,
        up_to_date_count,
        request_fingerprint,
        diff,
    })
}

/// Returns the tenant's limit that TriggerRun applies; 0 for no limit of its own.
fn max_tasks(planner: &Planner, tenant: &TenantId) -> Result<u32, Error> {
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

/// Adds the tenant whose limit was exceeded.
fn over_quota(tenant: &TenantId, error: Error) -> Error {
    if error.reason() != Reason::QuotaExceeded {
        return error;
    }
    let sentence = error.to_string();
    error.over_quota(format!("tenants/{tenant}"), sentence)
}

fn plan_request<'a>(
    scope: &'a Scope,
    deployment_id: &'a str,
    spec: &'a RunSpec,
    max_tasks: u32,
) -> PlanRequest<'a> {
    PlanRequest {
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
