//! What the two hashes of a plan see, as canonical JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Ordinal, PlanScope, PlanTask, Resources};
use crate::hash::Digest;
use crate::ids::{TenantId, WorkspaceId};
use crate::json::{Json, JsonError};
use crate::retry::RetryPolicy;
use crate::task_key::TaskKey;

const SPEC_VERSION: u8 = 1;

/// The plan's shape, for its fingerprint.
pub(super) fn normalised(scope: &PlanScope, tasks: &[PlanTask<Ordinal>]) -> Result<Json, JsonError> {
    Json::from_serialize(&Normalised {
        spec_version: SPEC_VERSION,
        tenant_id: &scope.tenant,
        workspace_id: &scope.workspace,
        tasks: by_key(tasks).into_iter().map(|task| task_shape(tasks, task)).collect(),
    })
}

/// The plan with everything in it, for its id.
pub(super) fn whole(scope: &PlanScope, tasks: &[PlanTask<Ordinal>]) -> Result<Json, JsonError> {
    Json::from_serialize(&Whole {
        spec_version: SPEC_VERSION,
        tenant_id: &scope.tenant,
        workspace_id: &scope.workspace,
        deployment_sha256: &scope.deployment,
        tasks: by_key(tasks).into_iter().map(|task| whole_task(tasks, task)).collect(),
    })
}

#[derive(Serialize)]
struct Normalised<'a> {
    spec_version: u8,
    tenant_id: &'a TenantId,
    workspace_id: &'a WorkspaceId,
    tasks: Vec<TaskShape<'a>>,
}

#[derive(Serialize)]
struct TaskShape<'a> {
    task_key: &'a TaskKey,
    upstream_keys: Vec<&'a TaskKey>,
    priority: i32,
    resources: Resources,
}

#[derive(Serialize)]
struct Whole<'a> {
    spec_version: u8,
    tenant_id: &'a TenantId,
    workspace_id: &'a WorkspaceId,
    deployment_sha256: &'a Digest,
    tasks: Vec<WholeTask<'a>>,
}

#[derive(Serialize)]
struct WholeTask<'a> {
    #[serde(flatten)]
    shape: TaskShape<'a>,
    map_over: Option<&'a TaskKey>,
    retry: &'a RetryPolicy,
    settings: &'a BTreeMap<String, Json>,
}

fn by_key(tasks: &[PlanTask<Ordinal>]) -> Vec<&PlanTask<Ordinal>> {
    let mut sorted: Vec<_> = tasks.iter().collect();
    sorted.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    sorted
}

fn task_shape<'a>(tasks: &'a [PlanTask<Ordinal>], task: &'a PlanTask<Ordinal>) -> TaskShape<'a> {
    TaskShape {
        task_key: &task.key,
        upstream_keys: task.upstream.iter().map(|&ordinal| key_of(tasks, ordinal)).collect(),
        priority: task.priority,
        resources: task.resources,
    }
}

fn whole_task<'a>(tasks: &'a [PlanTask<Ordinal>], task: &'a PlanTask<Ordinal>) -> WholeTask<'a> {
    WholeTask {
        shape: task_shape(tasks, task),
        map_over: task.map_over.map(|ordinal| key_of(tasks, ordinal)),
        retry: &task.retry,
        settings: &task.settings,
    }
}

fn key_of(tasks: &[PlanTask<Ordinal>], ordinal: Ordinal) -> &TaskKey {
    &tasks[ordinal as usize].key
}
