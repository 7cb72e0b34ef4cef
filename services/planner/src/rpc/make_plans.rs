//! MakePlans: makes and stores many plans of any tenants, in a handful of statements.
//!
//! Only services of the mesh call it, so it reads with the loop role, which sees all tenants. Every
//! order is planned from rows of its own tenant and workspace.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use prost::Message;
use servo_mesh::{Error, Reason, now};
use servo_model::limits::{MESSAGE_BYTES_MAX, PLAN_ORDERS_PER_CALL_MAX};
use servo_model::partitioning::{Moment, ValueList};
use servo_model::{Digest, Timestamp};
use servo_proto::mesh::v1::{
    MakePlansRequest, MakePlansResponse, PlanOrder, PlanRefusal, PlanResult, StoredPlan,
    plan_result,
};
use servo_proto::v1::RunSpec;

use super::Planner;
use super::support::blocking::run_blocking;
use super::support::errors::{store_error, unreadable_manifest};
use super::support::parse::{parse_deployment_id, parse_scope};
use crate::core::deployment_graph::DeploymentGraph;
use crate::core::freshness::{PartitionRef, Statuses};
use crate::core::plan::{BuiltPlan, PlanDraft, PlanRequest, draft};
use crate::core::refusal::Refusal;
use crate::store::plans::NewPlan;
use crate::store::{Scope, deployments, plans, sets, statuses};

/// The caller fetches a larger plan by its id.
const PLAN_BYTES_MAX: usize = 1024 * 1024;
/// Limit for all plans in one answer; the caller fetches the others too.
const ANSWER_BYTES_MAX: usize = MESSAGE_BYTES_MAX - PLAN_BYTES_MAX / 2;

pub(super) async fn make_plans(
    planner: &Planner,
    request: MakePlansRequest,
) -> Result<MakePlansResponse, Error> {
    let count = request.orders.len();
    if count > PLAN_ORDERS_PER_CALL_MAX {
        let sentence =
            format!("has {count} orders; at most {PLAN_ORDERS_PER_CALL_MAX} are taken at once");
        return Err(Error::bad_field("orders", sentence));
    }
    let mut jobs: Vec<Result<Job, Refusal>> = request.orders.into_iter().map(Job::new).collect();
    find_deployments(planner, &mut jobs).await?;
    let sets = find_sets(planner, &jobs).await?;
    let now = now();
    let drafted = run_blocking(move || {
        jobs.into_iter()
            .map(|job| job?.draft(&sets, now))
            .collect::<Vec<_>>()
    })
    .await?;
    let statuses = find_statuses(planner, &drafted).await?;
    let finish = move || {
        let jobs = drafted.into_iter().zip(statuses);
        jobs.map(|(job, statuses)| job.and_then(|job| job.finish(&statuses)))
            .collect::<Vec<_>>()
    };
    let plans_made = run_blocking(finish).await?;
    store_and_answer(planner, plans_made).await
}

/// An order that is being planned.
struct Job {
    scope: Scope,
    order: PlanOrder,
    spec: RunSpec,
    deployment: Option<(String, Arc<DeploymentGraph>)>,
}

type Sets = BTreeMap<Scope, BTreeMap<String, ValueList>>;

impl Job {
    fn new(mut order: PlanOrder) -> Result<Job, Refusal> {
        let scope = parse_scope(&order.tenant, &order.workspace);
        let scope = scope.map_err(|error| Refusal::new(error.reason(), error.to_string()))?;
        let spec = order.spec.take().ok_or_else(|| {
            Refusal::of_field(Reason::InvalidField, "spec", "is missing; name what to run")
        })?;
        Ok(Job {
            scope,
            order,
            spec,
            deployment: None,
        })
    }

    fn draft(self, sets: &Sets, now: Timestamp) -> Result<DraftedJob, Refusal> {
        let Some((deployment_id, graph)) = self.deployment.clone() else {
            let sentence = match self.spec.deployment_id.as_str() {
                "" => "nothing is deployed in this workspace yet; deploy first".to_owned(),
                id => format!("there is no deployment {id} in this workspace"),
            };
            return Err(Refusal::of_field(
                Reason::DeploymentNotFound,
                "spec.deployment_id",
                sentence,
            ));
        };
        let moment = Moment {
            now: now.to_jiff(),
            sets: sets.get(&self.scope).cloned().unwrap_or_default(),
        };
        let drafted = draft(&graph, &self.plan_request(&deployment_id), &moment)?;
        Ok(DraftedJob {
            drafted,
            deployment_id,
            graph,
            job: self,
        })
    }

    fn plan_request<'a>(&'a self, deployment_id: &'a str) -> PlanRequest<'a> {
        PlanRequest {
            tenant: &self.scope.tenant,
            workspace: &self.scope.workspace,
            deployment_id,
            spec: &self.spec,
            reused: &self.order.reused,
            only: &self.order.only_task_keys,
            max_tasks: self.order.max_tasks,
        }
    }
}

/// An order whose tasks are drafted, before the state of partitions is applied.
struct DraftedJob {
    job: Job,
    deployment_id: String,
    graph: Arc<DeploymentGraph>,
    drafted: PlanDraft,
}

impl DraftedJob {
    fn finish(self, statuses: &Statuses) -> Result<(Scope, BuiltPlan), Refusal> {
        let built = self.drafted.finish(
            &self.graph,
            &self.job.plan_request(&self.deployment_id),
            statuses,
        )?;
        Ok((self.job.scope, built))
    }
}

/// Loads the state of the partitions that plans depend on, with one statement, or none without such
/// partitions.
async fn find_statuses(
    planner: &Planner,
    jobs: &[Result<DraftedJob, Refusal>],
) -> Result<Vec<Statuses>, Error> {
    let partitions: Vec<Option<(&Scope, Vec<PartitionRef>)>> = jobs
        .iter()
        .map(|job| {
            let job = job.as_ref().ok()?;
            Some((&job.job.scope, job.drafted.partitions()))
        })
        .collect();
    statuses::of_plans(planner.store.loops(), &partitions)
        .await
        .map_err(store_error)
}

/// Finds the deployments of all orders, with at most two statements: one for the ids, one for the
/// manifests that are not cached.
async fn find_deployments(
    planner: &Planner,
    jobs: &mut [Result<Job, Refusal>],
) -> Result<(), Error> {
    // A malformed id refuses its order alone.
    for job in jobs.iter_mut() {
        let malformed = job
            .as_ref()
            .ok()
            .and_then(|job| parse_deployment_id(&job.spec.deployment_id).err());
        if let Some(error) = malformed {
            *job = Err(Refusal::of_field(
                error.reason(),
                "spec.deployment_id",
                error.to_string(),
            ));
        }
    }
    let mut valid: Vec<&mut Job> = jobs
        .iter_mut()
        .filter_map(|job| job.as_mut().ok())
        .collect();
    if valid.is_empty() {
        return Ok(());
    }
    let scopes: Vec<Scope> = valid.iter().map(|job| job.scope.clone()).collect();
    let ids = valid
        .iter()
        .map(|job| parse_deployment_id(&job.spec.deployment_id).ok().flatten())
        .collect();
    let found = deployments::find_many(planner.store.loops(), &scopes, ids)
        .await
        .map_err(store_error)?;
    let digests: Vec<(Scope, Digest)> = scopes
        .into_iter()
        .zip(&found)
        .filter_map(|(scope, found)| Some((scope, found.as_ref()?.1)))
        .collect();
    let graphs = load_graphs(planner, digests).await?;
    for (job, found) in valid.iter_mut().zip(found) {
        job.deployment =
            found.and_then(|(id, digest)| Some((id.to_string(), graphs.get(&digest)?.clone())));
    }
    Ok(())
}

async fn load_graphs(
    planner: &Planner,
    digests: Vec<(Scope, Digest)>,
) -> Result<HashMap<Digest, Arc<DeploymentGraph>>, Error> {
    let mut graphs = HashMap::new();
    let mut missing: HashMap<Digest, Scope> = HashMap::new();
    for (scope, digest) in digests {
        match planner.cached_graph(&digest) {
            Some(graph) => drop(graphs.insert(digest, graph)),
            None => drop(missing.insert(digest, scope)),
        }
    }
    if missing.is_empty() {
        return Ok(graphs);
    }
    let missing: Vec<(Scope, Digest)> = missing
        .into_iter()
        .map(|(digest, scope)| (scope, digest))
        .collect();
    for manifest in deployments::find_manifests(planner.store.loops(), &missing)
        .await
        .map_err(store_error)?
    {
        let graph = run_blocking(move || DeploymentGraph::from_normal(manifest))
            .await?
            .map_err(unreadable_manifest)?;
        let graph = planner.cache_graph(Arc::new(graph));
        graphs.insert(graph.digest, graph);
    }
    Ok(graphs)
}

/// Loads the dynamic partitions of all orders with one statement, or none without such partitions.
async fn find_sets(planner: &Planner, jobs: &[Result<Job, Refusal>]) -> Result<Sets, Error> {
    let mut scoped: BTreeSet<(Scope, String)> = BTreeSet::new();
    for job in jobs.iter().flatten() {
        let sets = job.deployment.iter().flat_map(|(_, graph)| &graph.sets);
        scoped.extend(sets.map(|set| (job.scope.clone(), set.clone())));
    }
    let scoped: Vec<(Scope, String)> = scoped.into_iter().collect();
    let lists = sets::values_of_many(planner.store.loops(), &scoped)
        .await
        .map_err(store_error)?;
    let mut sets = Sets::new();
    for ((scope, set), list) in scoped.into_iter().zip(lists) {
        sets.entry(scope).or_default().insert(set, list);
    }
    Ok(sets)
}

/// Stores all plans with one statement; the answer is built after they are stored.
async fn store_and_answer(
    planner: &Planner,
    plans_made: Vec<Result<(Scope, BuiltPlan), Refusal>>,
) -> Result<MakePlansResponse, Error> {
    let mut bytes_left = ANSWER_BYTES_MAX;
    let (mut plans, mut results) = (Vec::new(), Vec::with_capacity(plans_made.len()));
    for outcome in plans_made {
        let result = match outcome {
            Err(refusal) => plan_result::Result::Refusal(PlanRefusal {
                reason: refusal.reason.into(),
                field: refusal.field().to_owned(),
                message: refusal.message,
            }),
            Ok((scope, BuiltPlan { id, plan })) => {
                let bytes = plan.encode_to_vec();
                let fits = bytes.len() <= PLAN_BYTES_MAX.min(bytes_left);
                bytes_left -= if fits { bytes.len() } else { 0 };
                plans.push(NewPlan { scope, id, bytes });
                plan_result::Result::Plan(StoredPlan {
                    plan_id: plan.plan_id.clone(),
                    plan_fingerprint: plan.fingerprint.clone(),
                    deployment_id: plan.deployment_id.clone(),
                    task_count: u32::try_from(plan.tasks.len()).unwrap_or(u32::MAX),
                    plan: fits.then_some(plan),
                })
            }
        };
        results.push(PlanResult {
            result: Some(result),
        });
    }
    plans::insert(planner.store.loops(), plans)
        .await
        .map_err(store_error)?;
    Ok(MakePlansResponse { results })
}
