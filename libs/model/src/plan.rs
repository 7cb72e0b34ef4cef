//! A plan: the tasks of a run as a value. It is made once, checked once and identified by its
//! content.
//!
//! A plan has two hashes. The **plan id** covers everything; a stored plan is found by it. The
//! **fingerprint** covers only the shape (tasks, edges, priorities, resources) and tells whether
//! two plans do the same work; it is never used as a key.

mod shape;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::graph::{Graph, GraphError};
use crate::hash::Digest;
use crate::ids::{IdError, TenantId, WorkspaceId};
use crate::json::{Json, JsonError};
use crate::limits::{EDGES_PER_PLAN_MAX, TASKS_PER_RUN_MAX};
use crate::retry::RetryPolicy;
use crate::task_key::TaskKey;
use crate::text::written_as_text;

const FINGERPRINT_PREFIX: &str = "v1:sha256:";

/// The number of a task in its plan: topological order, ties broken by key. Frequently written rows
/// refer to the task by it.
pub type Ordinal = u32;

/// One task. `Link` is how it refers to other tasks: by [`TaskKey`] in the input, by [`Ordinal`] in
/// a [`Plan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanTask<Link> {
    pub key: TaskKey,
    /// In a [`Plan`] ascending and without repeats.
    pub upstream: Vec<Link>,
    /// The upstream whose result names the items that this task is mapped over.
    pub map_over: Option<Link>,
    pub priority: i32,
    pub resources: Resources,
    pub retry: RetryPolicy,
    /// Further settings of the deployment. They are part of the plan id and are not interpreted
    /// here.
    pub settings: BTreeMap<String, Json>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Resources {
    pub cpu_millicores: u64,
    pub memory_bytes: u64,
    pub timeout_ms: u64,
}

/// The owner of the plan and the settings that apply to all its tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanHeader {
    pub tenant: TenantId,
    pub workspace: WorkspaceId,
    /// The digest of the deployment that the plan was made from.
    pub deployment: Digest,
    /// Further settings of the run, such as its configuration or the outputs it reuses from an
    /// earlier run.
    pub settings: BTreeMap<String, Json>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    header: PlanHeader,
    tasks: Vec<PlanTask<Ordinal>>,
    id: PlanId,
    fingerprint: PlanFingerprint,
}

impl Plan {
    /// The order in which tasks and upstreams are given makes no difference.
    pub fn new(header: PlanHeader, mut tasks: Vec<PlanTask<TaskKey>>) -> Result<Plan, PlanError> {
        check_size(&tasks)?;
        tasks.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        check_mapping(&tasks)?;
        let links = Links::between(&tasks).map_err(GraphError::cloned)?;
        let tasks = links.apply(tasks);
        let id = PlanId(Digest::of(shape::full_json(&header, &tasks)?));
        let fingerprint = PlanFingerprint(Digest::of(shape::shape_json(&header, &tasks)?));
        Ok(Plan {
            header,
            tasks,
            id,
            fingerprint,
        })
    }

    pub fn id(&self) -> PlanId {
        self.id
    }

    pub fn fingerprint(&self) -> PlanFingerprint {
        self.fingerprint
    }

    pub fn header(&self) -> &PlanHeader {
        &self.header
    }

    /// By ordinal: every task comes after its upstreams.
    pub fn tasks(&self) -> &[PlanTask<Ordinal>] {
        &self.tasks
    }
}

/// The sha256 of the whole plan's canonical JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanId(Digest);

impl PlanId {
    pub const fn digest(&self) -> &Digest {
        &self.0
    }
}

impl fmt::Display for PlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for PlanId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        text.parse().map(PlanId)
    }
}

written_as_text!(PlanId);

/// Printed as `v1:sha256:…`; the version changes when the hashed content is defined differently.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanFingerprint(Digest);

impl fmt::Display for PlanFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FINGERPRINT_PREFIX}{}", self.0)
    }
}

impl FromStr for PlanFingerprint {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let digest = text
            .strip_prefix(FINGERPRINT_PREFIX)
            .and_then(|hex| hex.parse().ok());
        let rule = "write `v1:sha256:` and 64 lower-case hexadecimal digits";
        digest
            .map(PlanFingerprint)
            .ok_or_else(|| IdError::new("plan fingerprint", text, rule))
    }
}

written_as_text!(PlanFingerprint);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(
        "the plan has {0} tasks, more than the {TASKS_PER_RUN_MAX} that a run may have; select less or split it"
    )]
    TooManyTasks(usize),
    #[error(
        "the plan has {0} dependencies, more than the {EDGES_PER_PLAN_MAX} that it may have; select less or split it"
    )]
    TooManyEdges(usize),
    #[error(
        "the task `{task}` is mapped over `{over}`, which is not among its upstreams; add it there"
    )]
    MapOver { task: TaskKey, over: TaskKey },
    #[error("the plan's tasks do not fit together: {0}")]
    Graph(#[from] GraphError<TaskKey>),
    #[error("the plan's settings have no canonical form: {0}")]
    Settings(#[from] JsonError),
}

fn check_size(tasks: &[PlanTask<TaskKey>]) -> Result<(), PlanError> {
    let edges = tasks.iter().map(|task| task.upstream.len()).sum();
    if tasks.len() > TASKS_PER_RUN_MAX {
        return Err(PlanError::TooManyTasks(tasks.len()));
    }
    if edges > EDGES_PER_PLAN_MAX {
        return Err(PlanError::TooManyEdges(edges));
    }
    Ok(())
}

fn check_mapping(tasks: &[PlanTask<TaskKey>]) -> Result<(), PlanError> {
    for task in tasks {
        if let Some(source) = &task.map_over
            && !task.upstream.contains(source)
        {
            return Err(PlanError::MapOver {
                task: task.key.clone(),
                over: source.clone(),
            });
        }
    }
    Ok(())
}

/// The references between tasks, sorted by key, converted to ordinals.
struct Links {
    ordinals: Vec<Ordinal>,
    upstream: Vec<Vec<Ordinal>>,
    map_over: Vec<Option<Ordinal>>,
}

impl Links {
    fn between(tasks: &[PlanTask<TaskKey>]) -> Result<Links, GraphError<&TaskKey>> {
        let graph = Graph::new(
            tasks
                .iter()
                .map(|task| (&task.key, task.upstream.iter().collect())),
        )?;
        let mut ordinals = vec![0; tasks.len()];
        for (ordinal, node) in (0..).zip(graph.order()?) {
            ordinals[node as usize] = ordinal;
        }
        let find = |key: &TaskKey| {
            tasks
                .binary_search_by(|task| task.key.cmp(key))
                .ok()
                .map(|node| ordinals[node])
        };
        let all = |nodes: &Vec<u32>| {
            let mut upstream: Vec<Ordinal> =
                nodes.iter().map(|&node| ordinals[node as usize]).collect();
            upstream.sort_unstable();
            upstream
        };
        Ok(Links {
            upstream: graph.upstream().iter().map(all).collect(),
            map_over: tasks
                .iter()
                .map(|task| task.map_over.as_ref().and_then(find))
                .collect(),
            ordinals,
        })
    }

    fn apply(self, tasks: Vec<PlanTask<TaskKey>>) -> Vec<PlanTask<Ordinal>> {
        let links = self.upstream.into_iter().zip(self.map_over);
        let linked = tasks
            .into_iter()
            .zip(links)
            .map(|(task, (upstream, map_over))| task.linked(upstream, map_over));
        let mut placed: Vec<(Ordinal, PlanTask<Ordinal>)> =
            self.ordinals.into_iter().zip(linked).collect();
        placed.sort_unstable_by_key(|(ordinal, _)| *ordinal);
        placed.into_iter().map(|(_, task)| task).collect()
    }
}

impl PlanTask<TaskKey> {
    fn linked(self, upstream: Vec<Ordinal>, map_over: Option<Ordinal>) -> PlanTask<Ordinal> {
        let PlanTask {
            key,
            priority,
            resources,
            retry,
            settings,
            ..
        } = self;
        PlanTask {
            key,
            upstream,
            map_over,
            priority,
            resources,
            retry,
            settings,
        }
    }
}
