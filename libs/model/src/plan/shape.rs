//! The canonical JSON that the two hashes of a plan cover.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Ordinal, PlanHeader, PlanTask, Resources};
use crate::hash::Digest;
use crate::ids::{TenantId, WorkspaceId};
use crate::json::{Json, JsonError, to_canonical};
use crate::retry::RetryPolicy;
use crate::task_key::TaskKey;

const SPEC_VERSION: u8 = 1;

/// The shape of the plan, hashed for its fingerprint.
pub(super) fn shape_json(
    header: &PlanHeader,
    tasks: &[PlanTask<Ordinal>],
) -> Result<String, JsonError> {
    to_canonical(&PlanShape {
        spec_version: SPEC_VERSION,
        tenant_id: &header.tenant,
        workspace_id: &header.workspace,
        tasks: by_key(tasks)
            .into_iter()
            .map(|task| task_shape(tasks, task))
            .collect(),
    })
}

/// The whole plan, hashed for its id.
pub(super) fn full_json(
    header: &PlanHeader,
    tasks: &[PlanTask<Ordinal>],
) -> Result<String, JsonError> {
    to_canonical(&FullPlan {
        spec_version: SPEC_VERSION,
        tenant_id: &header.tenant,
        workspace_id: &header.workspace,
        deployment_sha256: &header.deployment,
        settings: &header.settings,
        tasks: by_key(tasks)
            .into_iter()
            .map(|task| full_task(tasks, task))
            .collect(),
    })
}

// The fields are declared in the order of canonical JSON, so that megabytes need not be sorted.

#[derive(Serialize)]
struct PlanShape<'a> {
    spec_version: u8,
    tasks: Vec<TaskShape<'a>>,
    tenant_id: &'a TenantId,
    workspace_id: &'a WorkspaceId,
}

#[derive(Serialize)]
struct TaskShape<'a> {
    priority: i32,
    resources: Resources,
    task_key: &'a TaskKey,
    upstream_keys: Vec<&'a TaskKey>,
}

#[derive(Serialize)]
struct FullPlan<'a> {
    deployment_sha256: &'a Digest,
    settings: &'a BTreeMap<String, Json>,
    spec_version: u8,
    tasks: Vec<FullTask<'a>>,
    tenant_id: &'a TenantId,
    workspace_id: &'a WorkspaceId,
}

#[derive(Serialize)]
struct FullTask<'a> {
    map_over: Option<&'a TaskKey>,
    priority: i32,
    resources: Resources,
    retry: &'a RetryPolicy,
    settings: &'a BTreeMap<String, Json>,
    task_key: &'a TaskKey,
    upstream_keys: Vec<&'a TaskKey>,
}

fn by_key(tasks: &[PlanTask<Ordinal>]) -> Vec<&PlanTask<Ordinal>> {
    let mut sorted: Vec<_> = tasks.iter().collect();
    sorted.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    sorted
}

fn task_shape<'a>(tasks: &'a [PlanTask<Ordinal>], task: &'a PlanTask<Ordinal>) -> TaskShape<'a> {
    TaskShape {
        task_key: &task.key,
        upstream_keys: upstream_keys(tasks, task),
        priority: task.priority,
        resources: task.resources,
    }
}

fn full_task<'a>(tasks: &'a [PlanTask<Ordinal>], task: &'a PlanTask<Ordinal>) -> FullTask<'a> {
    FullTask {
        task_key: &task.key,
        upstream_keys: upstream_keys(tasks, task),
        map_over: task.map_over.map(|ordinal| key_of(tasks, ordinal)),
        priority: task.priority,
        resources: task.resources,
        retry: &task.retry,
        settings: &task.settings,
    }
}

fn upstream_keys<'a>(tasks: &'a [PlanTask<Ordinal>], task: &PlanTask<Ordinal>) -> Vec<&'a TaskKey> {
    let mut keys: Vec<&TaskKey> = task
        .upstream
        .iter()
        .map(|&ordinal| key_of(tasks, ordinal))
        .collect();
    keys.sort_unstable();
    keys
}

fn key_of(tasks: &[PlanTask<Ordinal>], ordinal: Ordinal) -> &TaskKey {
    &tasks[ordinal as usize].key
}
