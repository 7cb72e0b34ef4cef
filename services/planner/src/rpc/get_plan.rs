//! GetPlan: returns a stored plan, a page of tasks at a time.

use servo_mesh::Error;
use servo_mesh::paging::page_size;
use servo_proto::v1::{GetPlanRequest, GetPlanResponse};

use super::Planner;
use super::support::errors::store_error;
use super::support::parse::{parse_plan_id, plan_not_found, scope};
use crate::core::plan_page;
use crate::store::plans;

const TASKS_DEFAULT: usize = 100;
const TASKS_MAX: usize = 1_000;

pub(super) async fn get_plan(
    planner: &Planner,
    request: GetPlanRequest,
) -> Result<GetPlanResponse, Error> {
    let scope = scope(&request)?;
    let size = page_size(request.page_size, TASKS_DEFAULT, TASKS_MAX)?;
    let id = parse_plan_id(&request.plan_id)?;
    let list = [
        "plan",
        scope.tenant.as_str(),
        scope.workspace.as_str(),
        &request.plan_id,
    ];
    let cursor = planner.pages.read(&list, &request.page_token)?;
    let first: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let mut tx = planner.begin(&scope).await?;
    let found = plans::find(&mut tx, &scope, &id)
        .await
        .map_err(store_error)?;
    let mut plan = found.ok_or_else(|| plan_not_found(&request.plan_id))?;
    let count = plan.tasks.len();
    let after = first.saturating_add(size).min(count);
    plan_page::keep(&mut plan, first..after);
    let next = (after < count).then(|| planner.pages.write(&list, &after.to_string()));
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(GetPlanResponse {
        plan: Some(plan),
        task_count: number(count),
        first_ordinal: number(first),
        next_page_token: next.unwrap_or_default(),
    })
}
