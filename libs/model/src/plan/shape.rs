//! What the two hashes of a plan see, as canonical JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Ordinal, PlanHeader, PlanTask, Resources};
use crate::hash::Digest;
use crate::ids::{TenantId, WorkspaceId};
use crate::json::{Json, JsonError, to_canonical};
use crate::retry::RetryPolicy;
use crate::task_key::TaskKey;

const SPEC_VERSION: u8 = 1;

/// The plan's shape, for its fingerprint.
pub(super) fn normalised(
    header: &PlanHeader,
    tasks: &[PlanTask<Ordinal>],
) -> Result<String, JsonError> {
    to_canonical(&Normalised {
        spec_version: SPEC_VERSION,
        tenant_id: &header.tenant,
        workspace_id: &header.workspace,
        tasks: by_key(tasks)
            .into_iter()
            .map(|task| task_shape(tasks, task))
            .collect(),
    })
}

/// The plan with everything in it, for its id.
pub(super) fn whole(header: &PlanHeader, tasks: &[PlanTask<Ordinal>]) -> Result<String, JsonError> {
    to_canonical(&Whole {
        spec_version: SPEC_VERSION,
        tenant_id: &header.tenant,
        workspace_id: &header.workspace,
        deployment_sha256: &header.deployment,
        settings: &header.settings,
        tasks: by_key(tasks)
            .into_iter()
            .map(|task| whole_task(tasks, task))
            .collect(),
    })
}

// Fields stand in the order of canonical JSON, which spares putting megabytes in order.

#[derive(Serialize)]
struct Normalised<'a> {
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
struct Whole<'a> {
    deployment_sha256: &'a Digest,
    settings: &'a BTreeMap<String, Json>,
    spec_version: u8,
    tasks: Vec<WholeTask<'a>>,
    tenant_id: &'a TenantId,
    workspace_id: &'a WorkspaceId,
}

#[derive(Serialize)]
struct WholeTask<'a> {
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

fn whole_task<'a>(tasks: &'a [PlanTask<Ordinal>], task: &'a PlanTask<Ordinal>) -> WholeTask<'a> {
    WholeTask {
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
