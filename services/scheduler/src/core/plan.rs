//! A plan in memory: the dependencies between tasks, and the settings for retries and timeouts.

use std::sync::Arc;

use servo_model::retry::RetryPolicy;
use servo_model::{TaskKey, TaskRef};

#[derive(Debug)]
pub struct Plan {
    pub plan_id: [u8; 32],
    pub deployment_id: Arc<str>,
    pub assets: Vec<AssetSettings>,
    pub tasks: Vec<PlannedTask>,
    /// For each task, where its downstream ordinals begin in `downstream`.
    downstream_from: Vec<u32>,
    downstream: Vec<u32>,
}

#[derive(Debug, Clone)]
pub struct AssetSettings {
    pub asset_key: Arc<str>,
    pub also_makes: Vec<Arc<str>>,
    pub retry: RetryPolicy,
    /// Error types that are retried whatever their category.
    pub retry_types: Vec<String>,
    /// Error types that are never retried; wins over the rest.
    pub never_types: Vec<String>,
    pub execution_us: i64,
    pub dispatch_ack_us: i64,
    pub heartbeat_us: i64,
    pub pool: Arc<str>,
    pub priority: i32,
    pub code_version: Arc<str>,
}

impl AssetSettings {
    /// The assets that one attempt writes.
    pub fn makes(&self) -> impl Iterator<Item = &Arc<str>> {
        std::iter::once(&self.asset_key).chain(&self.also_makes)
    }
}

#[derive(Debug, Clone)]
pub struct PlannedTask {
    pub key: TaskKey,
    /// Index into the assets.
    pub asset: u32,
    pub partition_key: Arc<str>,
    pub upstream: Box<[u32]>,
    /// The upstream for each of whose items the task runs once.
    pub mapped_over: Option<u32>,
    /// The output is up to date, so the task succeeds without an attempt.
    pub up_to_date: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPlan {
    #[error("task {task} waits for task {upstream}, which does not come before it")]
    Order { task: usize, upstream: u32 },
    #[error("task {task} names asset {asset}, but the plan has {assets}")]
    Asset {
        task: usize,
        asset: u32,
        assets: usize,
    },
    #[error("task {task} is mapped over task {over}, which is not among its upstreams")]
    Mapping { task: usize, over: u32 },
    #[error("{0}")]
    Field(String),
}

impl Plan {
    pub fn new(
        plan_id: [u8; 32],
        deployment_id: Arc<str>,
        assets: Vec<AssetSettings>,
        tasks: Vec<PlannedTask>,
    ) -> Result<Plan, BadPlan> {
        tasks
            .iter()
            .enumerate()
            .try_for_each(|(ordinal, task)| check(ordinal, task, assets.len()))?;
        let (downstream_from, downstream) = reverse(&tasks);
        Ok(Plan {
            plan_id,
            deployment_id,
            assets,
            tasks,
            downstream_from,
            downstream,
        })
    }

    pub fn task(&self, ordinal: u32) -> &PlannedTask {
        &self.tasks[ordinal as usize]
    }

    /// The key of a task; for a mapped task it contains the map index.
    pub fn task_key(&self, task_ref: TaskRef) -> TaskKey {
        let planned = &self.task(task_ref.ordinal).key;
        task_ref
            .map_index
            .map_or_else(|| planned.clone(), |item| planned.child(item))
    }

    pub fn settings(&self, ordinal: u32) -> &AssetSettings {
        &self.assets[self.task(ordinal).asset as usize]
    }

    /// The tasks that depend on this one, ascending.
    pub fn downstream(&self, ordinal: u32) -> &[u32] {
        let ordinal = ordinal as usize;
        &self.downstream
            [self.downstream_from[ordinal] as usize..self.downstream_from[ordinal + 1] as usize]
    }
}

/// A plan is in topological order, so an upstream before its task cannot form a cycle.
fn check(ordinal: usize, task: &PlannedTask, assets: usize) -> Result<(), BadPlan> {
    if task.asset as usize >= assets {
        return Err(BadPlan::Asset {
            task: ordinal,
            asset: task.asset,
            assets,
        });
    }
    if let Some(upstream) = task
        .upstream
        .iter()
        .find(|upstream| **upstream as usize >= ordinal)
    {
        return Err(BadPlan::Order {
            task: ordinal,
            upstream: *upstream,
        });
    }
    match task.mapped_over {
        Some(over) if !task.upstream.contains(&over) => Err(BadPlan::Mapping {
            task: ordinal,
            over,
        }),
        _ => Ok(()),
    }
}

fn reverse(tasks: &[PlannedTask]) -> (Vec<u32>, Vec<u32>) {
    let mut from = vec![0u32; tasks.len() + 1];
    let edges = || {
        (0u32..)
            .zip(tasks)
            .flat_map(|(ordinal, task)| task.upstream.iter().map(move |up| (*up as usize, ordinal)))
    };
    edges().for_each(|(up, _)| from[up + 1] += 1);
    for ordinal in 0..tasks.len() {
        from[ordinal + 1] += from[ordinal];
    }
    let mut next = from.clone();
    let mut downstream = vec![0u32; from.last().map_or(0, |edges| *edges as usize)];
    for (up, ordinal) in edges() {
        downstream[next[up] as usize] = ordinal;
        next[up] += 1;
    }
    (from, downstream)
}
