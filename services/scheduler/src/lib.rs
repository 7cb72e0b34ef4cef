//! The scheduler owns runs and tasks.
//!
//! Its instances lease the shards of the execution stream, append and fold events, and answer the run API (schema
//! `scheduler`). [`core`] decides, [`shards`] keeps memory and rows in step, `rpc` is the door.
//!
//! **Stays absent:** talking to workers; that is the dispatcher's and the callback's affair.

pub mod core;
mod known;
mod loops;
mod metrics;
mod passing;
mod planning;
mod replay;
mod route;
mod rpc;
mod secrets;
mod shards;
mod store;
mod transitions;
mod wire;

use std::time::Duration;

use serde::Deserialize;
use servo_bus::{Listeners, Topic};
use servo_mesh::paging::PageTokens;
use servo_mesh::{Fault, Life, Mesh, Pace};
use servo_model::Service;
use servo_proto::v1::dispatcher_service_client::DispatcherServiceClient;
use servo_proto::v1::planner_service_client::PlannerServiceClient;
use servo_proto::v1::scheduler_service_server::SchedulerServiceServer;
use servo_store::{DatabaseConfig, LeaseTtl, Store};
use tokio::sync::{mpsc, watch};
use ulid::Ulid;

pub use crate::shards::{RebuildError, Rebuilt, rebuild};

use crate::core::Limits;
use crate::known::KnownRuns;
use crate::loops::{Desk, Follower, plan_runs};
use crate::metrics::Metrics;
use crate::planning::Planning;
use crate::route::Route;
use crate::rpc::Scheduler;
use crate::secrets::RunIds;
use crate::shards::{Around, Keeper, Plans, Shards};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
    pub scheduler: Instance,
}

/// The `[scheduler]` section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
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
pub fn start(mesh: Mesh<Config>) -> Life {
    Box::pin(serve(mesh))
}

async fn serve(mesh: Mesh<Config>) -> Result<(), Fault> {
    let Config {
        database,
        scheduler: instance,
    } = mesh.config();
    let store = Store::connect(Service::Scheduler, database)?;
    let run_ids = RunIds::new(&instance.run_id_secret)
        .map_err(|error| Fault::config("scheduler.run_id_secret", error))?;
    let ttl = LeaseTtl::new(instance.lease_ttl)
        .map_err(|error| Fault::config("scheduler.lease_ttl", error.fault))?;
    let listen = mesh.common().server.address(Service::Scheduler);
    let address = instance
        .address
        .clone()
        .unwrap_or_else(|| format!("https://{listen}"));
    let plans = Plans::default();
    let (unplanned, waiting) = mpsc::unbounded_channel();
    let metrics = Metrics::default();
    metrics.register(&mut mesh.metrics());
    let listeners = Listeners::start(store.loops().clone(), Topic::Runs);
    let (limits_board, limits) = watch::channel(Limits::default());
    let around = Around {
        plans: plans.clone(),
        unplanned,
        metrics,
        listeners: Some(listeners.clone()),
        limits: limits.clone(),
    };
    let shards = Shards::start(&store, around);
    let keeper = Keeper::new(
        &store,
        shards.clone(),
        &Ulid::generate().to_string(),
        &address,
        ttl,
    );
    let planning = Planning::start(mesh.peer(Service::Planner));
    let tokens = PageTokens::new(instance.run_id_secret.as_bytes());
    let loops = store.loops().clone();
    let desk = Desk {
        planning: planning.clone(),
        plans: plans.clone(),
        shards: shards.clone(),
        loops: loops.clone(),
        limits: limits.clone(),
    };
    let planner = tokio::spawn(plan_runs(waiting, desk));
    let follower = Follower {
        quota: mesh.peer(Service::Quota),
        board: limits_board.into(),
        shards: shards.clone(),
    };
    let known = KnownRuns::start(loops.clone());
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
        planning,
        planner: PlannerServiceClient::new(mesh.peer(Service::Planner)),
        known,
        route,
        run_ids,
        tokens,
        dispatcher,
        limits,
    };
    let (round, bus, ledger) = (keeper.clone(), store.loops().clone(), store.loops().clone());
    let served = mesh
        .serve(SchedulerServiceServer::new(scheduler))
        .ready_when(store.readiness())
        .with_loop(
            "keep shards",
            Pace::every(ttl.get() / 3).woken_by(keeper.bell()),
            move || round.clone().run_once(),
        )
        .with_loop("limits", Pace::every(LIMITS_EVERY), move || {
            follower.clone().follow()
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
    keeper.leave().await;
    planner.abort();
    served
}
