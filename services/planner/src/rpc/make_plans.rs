//! MakePlans: many plans of any tenant, in a handful of statements.
//!
//! Only services of the mesh call it, so it reads with the loop role, which sees all tenants. Every order is planned
//! from rows of its own tenant and workspace.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use prost::Message;
use servo_mesh::{Error, Reason};
use servo_model::Digest;
use servo_model::limits::{MESSAGE_BYTES_MAX, PLAN_ORDERS_PER_CALL_MAX};
use servo_model::partitioning::{Moment, ValueList};
use servo_proto::v1::{
    MakePlansRequest, MakePlansResponse, PlanOrder, PlanRefusal, PlanResult, RunSpec, StoredPlan,
    plan_result,
};

use super::context::{Planner, deployment_id, scope_of, stored, unreadable, working};
use crate::core::deployed::Deployed;
use crate::core::freshness::{Place, Statuses};
use crate::core::plan::{Drafted, Made, Order, draft};
use crate::core::refusal::Refusal;
use crate::store::plans::NewPlan;
use crate::store::{Scope, deployments, plans, sets, statuses};

/// A plan above this is fetched by its id.
const PLAN_BYTES_MAX: usize = 1024 * 1024;
/// Plans that travel in one answer; the rest is fetched too.
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
    let now = Timestamp::now();
    let drafted = working(move || {
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
    let made = working(finish).await?;
    store_and_answer(planner, made).await
}

/// One order on its way to a plan.
struct Job {
    scope: Scope,
    order: PlanOrder,
    spec: RunSpec,
    deployment: Option<(String, Arc<Deployed>)>,
}

type Sets = BTreeMap<(String, String), BTreeMap<String, ValueList>>;

impl Job {
    fn new(mut order: PlanOrder) -> Result<Job, Refusal> {
        let scope = scope_of(&order.tenant, &order.workspace);
        let scope = scope.map_err(|error| Refusal::new(error.reason(), error.to_string()))?;
        let spec = order.spec.take().ok_or_else(|| {
            Refusal::of_field(Reason::InvalidField, "spec", "is missing; say what to run")
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
            let wanted = match self.spec.deployment_id.as_str() {
                "" => "nothing is deployed in this workspace yet; deploy first".to_owned(),
                id => format!("there is no deployment {id} in this workspace"),
            };
            return Err(Refusal::of_field(
                Reason::DeploymentNotFound,
                "spec.deployment_id",
                wanted,
            ));
        };
        let key = (self.scope.tenant.clone(), self.scope.workspace.clone());
        let moment = Moment {
            now,
            sets: sets.get(&key).cloned().unwrap_or_default(),
        };
        let drafted = draft(&graph, &self.order(&deployment_id), &moment)?;
        Ok(DraftedJob {
            drafted,
            deployment_id,
            graph,
            job: self,
        })
    }

    fn order<'a>(&'a self, deployment_id: &'a str) -> Order<'a> {
        Order {
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

/// An order whose tasks are known, as far as they do not depend on what partitions are like.
struct DraftedJob {
    job: Job,
    deployment_id: String,
    graph: Arc<Deployed>,
    drafted: Drafted,
}

impl DraftedJob {
    fn finish(self, statuses: &Statuses) -> Result<(Scope, Made), Refusal> {
        let made =
            self.drafted
                .finish(&self.graph, &self.job.order(&self.deployment_id), statuses)?;
        Ok((self.job.scope, made))
    }
}

/// One statement for the partitions on which plans depend, none when there are none.
async fn find_statuses(
    planner: &Planner,
    jobs: &[Result<DraftedJob, Refusal>],
) -> Result<Vec<Statuses>, Error> {
    let nobody = Scope {
        tenant: String::new(),
        workspace: String::new(),
    };
    let wanted: Vec<(&Scope, Vec<Place>)> = jobs
        .iter()
        .map(|job| {
            job.as_ref().map_or((&nobody, Vec::new()), |job| {
                (&job.job.scope, job.drafted.places())
            })
        })
        .collect();
    statuses::of_many(planner.store.loops(), &wanted)
        .await
        .map_err(stored)
}

/// Two statements at most: which deployments are meant, and the manifests that are not in memory.
async fn find_deployments(
    planner: &Planner,
    jobs: &mut [Result<Job, Refusal>],
) -> Result<(), Error> {
    // An id that cannot be one finds nothing.
    for job in jobs.iter_mut() {
        let bad = job
            .as_ref()
            .ok()
            .and_then(|job| deployment_id(&job.spec.deployment_id).err());
        if let Some(error) = bad {
            *job = Err(Refusal::of_field(
                error.reason(),
                "spec.deployment_id",
                error.to_string(),
            ));
        }
    }
    let mut wanted: Vec<&mut Job> = jobs
        .iter_mut()
        .filter_map(|job| job.as_mut().ok())
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let scopes: Vec<Scope> = wanted.iter().map(|job| job.scope.clone()).collect();
    let ids = wanted
        .iter()
        .map(|job| deployment_id(&job.spec.deployment_id).ok().flatten())
        .collect();
    let found = deployments::find_ordered(planner.store.loops(), &scopes, ids)
        .await
        .map_err(stored)?;
    let digests: Vec<(Scope, Digest)> = scopes
        .into_iter()
        .zip(&found)
        .filter_map(|(scope, found)| Some((scope, found.as_ref()?.1)))
        .collect();
    let graphs = graphs(planner, digests).await?;
    for (job, found) in wanted.iter_mut().zip(found) {
        job.deployment =
            found.and_then(|(id, digest)| Some((id.to_string(), graphs.get(&digest)?.clone())));
    }
    Ok(())
}

async fn graphs(
    planner: &Planner,
    wanted: Vec<(Scope, Digest)>,
) -> Result<HashMap<Digest, Arc<Deployed>>, Error> {
    let mut graphs = HashMap::new();
    let mut missing: HashMap<Digest, Scope> = HashMap::new();
    for (scope, digest) in wanted {
        match planner.graphs.find(&digest) {
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
    for manifest in deployments::manifests(planner.store.loops(), &missing)
        .await
        .map_err(stored)?
    {
        let graph = working(move || Deployed::from_normal(manifest))
            .await?
            .map_err(unreadable)?;
        let graph = planner.graphs.keep(Arc::new(graph));
        graphs.insert(graph.digest, graph);
    }
    Ok(graphs)
}

/// One statement for the dynamic partitions of all orders, none when there are none.
async fn find_sets(planner: &Planner, jobs: &[Result<Job, Refusal>]) -> Result<Sets, Error> {
    let mut wanted: BTreeSet<(String, String, String)> = BTreeSet::new();
    for job in jobs.iter().flatten() {
        let names = job.deployment.iter().flat_map(|(_, graph)| &graph.sets);
        wanted.extend(names.map(|set| {
            (
                job.scope.tenant.clone(),
                job.scope.workspace.clone(),
                set.clone(),
            )
        }));
    }
    let wanted: Vec<(Scope, String)> = wanted
        .into_iter()
        .map(|(tenant, workspace, set)| (Scope { tenant, workspace }, set))
        .collect();
    let lists = sets::values_of_many(planner.store.loops(), &wanted)
        .await
        .map_err(stored)?;
    let mut sets = Sets::new();
    for ((scope, set), list) in wanted.into_iter().zip(lists) {
        sets.entry((scope.tenant, scope.workspace))
            .or_default()
            .insert(set, list);
    }
    Ok(sets)
}

/// One statement for all plans; the answer names a plan only once it is stored.
async fn store_and_answer(
    planner: &Planner,
    made: Vec<Result<(Scope, Made), Refusal>>,
) -> Result<MakePlansResponse, Error> {
    let mut room = ANSWER_BYTES_MAX;
    let (mut plans, mut results) = (Vec::new(), Vec::with_capacity(made.len()));
    for outcome in made {
        let result = match outcome {
            Err(refusal) => plan_result::Result::Refusal(PlanRefusal {
                reason: refusal.reason.into(),
                field: refusal.field().to_owned(),
                message: refusal.message,
            }),
            Ok((scope, Made { id, plan })) => {
                let bytes = plan.encode_to_vec();
                let fits = bytes.len() <= PLAN_BYTES_MAX.min(room);
                room -= if fits { bytes.len() } else { 0 };
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
    plans::keep(planner.store.loops(), plans)
        .await
        .map_err(stored)?;
    Ok(MakePlansResponse { results })
}
