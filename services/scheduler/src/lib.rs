//! The scheduler owns runs and tasks.
//!
//! Its instances lease the shards of the execution stream, append and fold events, and answer the run API (schema
//! `scheduler`). [`core`] decides, [`shards`] keeps memory and rows in step, `rpc` is the door.
//!
//! **Stays absent:** talking to workers; that is the dispatcher's and the callback's affair.

pub mod core;
mod forward;
mod loops;
mod metrics;
mod plan_batcher;
mod plan_requester;
mod plans;
mod replay;
mod route;
mod rpc;
mod run_ids;
mod run_lookup;
mod shards;
mod store;
mod transition_log;
mod wire;

use std::time::Duration;

use serde::Deserialize;
use servo_bus::{Listeners, Topic};
use servo_mesh::paging::PageTokens;
use servo_mesh::{Fault, Mesh, Pace, ServiceFuture};
use servo_model::Service;
use servo_proto::v1::dispatcher_service_client::DispatcherServiceClient;
use servo_proto::v1::planner_service_client::PlannerServiceClient;
use servo_proto::v1::scheduler_service_server::SchedulerServiceServer;
use servo_store::{DatabaseConfig, LeaseTtl, Store};
use tokio::sync::{mpsc, watch};
use ulid::Ulid;

pub use crate::shards::{RebuildError, Rebuilt, rebuild};

use crate::core::Limits;
use crate::loops::LimitsFollower;
use crate::metrics::Metrics;
use crate::plan_batcher::PlanBatcher;
use crate::plan_requester::{PlanRequester, plan_runs};
use crate::plans::Plans;
use crate::route::Route;
use crate::rpc::Scheduler;
use crate::run_ids::RunIds;
use crate::run_lookup::RunLookup;
use crate::shards::{LaneContext, LeaseKeeper, Shards};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
    pub scheduler: Section,
}

/// The `[scheduler]` section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// What run ids derive from, the same for all instances and for ever; at least 32 bytes.
    pub run_id_secret: String,
    /// Where other services reach this instance. Defaults to the address it listens on.
    pub address: Option<String>,
    /// How long a shard waits for an instance that went silent.
    #[serde(
        default = "lease_ttl",
        deserialize_with = "servo_mesh::config::duration"
    )]
    pub lease_ttl: Duration,
}

fn lease_ttl() -> Duration {
    Duration::from_secs(5)
}

/// How soon a stream of limits that broke is opened again.
const LIMITS_EVERY: Duration = Duration::from_millis(500);

/// Serves the API until the process is told to stop.
pub fn start(mesh: Mesh<Config>) -> ServiceFuture {
    Box::pin(serve(mesh))
}

async fn serve(mesh: Mesh<Config>) -> Result<(), Fault> {
    let Config {
        database,
        scheduler: section,
    } = mesh.config();
    let store = Store::connect(Service::Scheduler, database)?;
    let run_ids = RunIds::new(&section.run_id_secret)
        .map_err(|error| Fault::config("scheduler.run_id_secret", error))?;
    let ttl = LeaseTtl::new(section.lease_ttl)
        .map_err(|error| Fault::config("scheduler.lease_ttl", error.fault))?;
    let listen = mesh.common().server.address(Service::Scheduler);
    let address = section
        .address
        .clone()
        .unwrap_or_else(|| format!("https://{listen}"));
    let plans = Plans::default();
    let (unplanned, waiting) = mpsc::unbounded_channel();
    let metrics = Metrics::default();
    metrics.register(&mut mesh.metrics());
    let listeners = Listeners::start(store.loops().clone(), Topic::Runs);
    let (limits_tx, limits) = watch::channel(Limits::default());
    let context = LaneContext {
        plans: plans.clone(),
        unplanned,
        metrics,
        listeners: Some(listeners.clone()),
        limits: limits.clone(),
    };
    let shards = Shards::start(&store, context);
    let lease_keeper = LeaseKeeper::new(
        &store,
        shards.clone(),
        &Ulid::generate().to_string(),
        &address,
        ttl,
    );
    let plan_batcher = PlanBatcher::start(mesh.peer(Service::Planner));
    let tokens = PageTokens::new(section.run_id_secret.as_bytes());
    let loops = store.loops().clone();
    let requester = PlanRequester {
        plan_batcher: plan_batcher.clone(),
        plans: plans.clone(),
        shards: shards.clone(),
        loops: loops.clone(),
        limits: limits.clone(),
    };
    let planner = tokio::spawn(plan_runs(waiting, requester));
    let follower = LimitsFollower {
        quota: mesh.peer(Service::Quota),
        limits_tx: limits_tx.into(),
        shards: shards.clone(),
    };
    let run_lookup = RunLookup::start(loops.clone());
    let route = Route::new(
        shards.clone(),
        mesh.holders(Service::Scheduler),
        loops,
        &address,
    );
    let dispatcher = DispatcherServiceClient::new(mesh.peer(Service::Dispatcher));
    let scheduler = Scheduler {
        store: store.clone(),
        shards,
        plans,
        plan_batcher,
        planner: PlannerServiceClient::new(mesh.peer(Service::Planner)),
        run_lookup,
        route,
        run_ids,
        tokens,
        dispatcher,
        limits,
    };
    let (round, bus, ledger) = (
        lease_keeper.clone(),
        store.loops().clone(),
        store.loops().clone(),
    );
    let served = mesh
        .serve(SchedulerServiceServer::new(scheduler))
        .ready_when(store.readiness())
        .with_loop(
            "keep shards",
            Pace::every(ttl.get() / 3).woken_by(lease_keeper.doorbell()),
            move || round.clone().run_once(),
        )
        .with_loop("limits", Pace::every(LIMITS_EVERY), move || {
            follower.clone().run_once()
        })
        .with_loop(
            "sweep bus",
            Pace::every(loops::SWEEP_BUS_EVERY),
            move || loops::sweep_bus(listeners.clone(), bus.clone()),
        )
        .with_loop(
            "sweep ledger",
            Pace::every(loops::SWEEP_LEDGER_EVERY),
            move || loops::sweep_ledger(ledger.clone()),
        )
        .until_signal()
        .await;
    lease_keeper.leave().await;
    planner.abort();
    served
}
