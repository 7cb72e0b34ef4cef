//! The scheduler owns runs and tasks.
//!
//! Its instances lease the shards of the execution stream, append and fold events, and serve the
//! run API (schema `scheduler`). [`core`] decides, [`shards`] holds the memory and writes the rows,
//! [`rpc`] serves the API, [`reads`] answers queries from the rows and the ledger, [`store`]
//! contains the SQL, and [`wire`] converts between messages and the values of [`core`].
//!
//! Commands for a shard that another instance holds go through [`forward`]. A new run is looked up
//! with [`run_lookup`] and planned through [`plan_batcher`]; [`plan_requester`] plans runs that
//! were stored without a plan; [`plans`] caches plans.
//!
//! **Stays absent:** calls to workers, which belong to the dispatcher and the callback service.

pub mod core;
mod forward;
mod loops;
mod metrics;
mod plan_batcher;
mod plan_requester;
mod plans;
mod reads;
mod rpc;
mod run_ids;
mod run_lookup;
mod shards;
mod store;
mod transition_log;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use servo_bus::{BusDoorbell, Topic};
use servo_mesh::paging::PageTokens;
use servo_mesh::{Fault, Mesh, Pace, ServiceFuture};
use servo_model::{Service, Stream};
use servo_proto::mesh::v1::dispatcher_mesh_service_client::DispatcherMeshServiceClient;
use servo_proto::mesh::v1::planner_mesh_service_client::PlannerMeshServiceClient;
use servo_proto::mesh::v1::scheduler_mesh_service_server::SchedulerMeshServiceServer;
use servo_proto::v1::scheduler_service_server::SchedulerServiceServer;
use servo_proto::v1::system_service_server::SystemServiceServer;
use servo_service::ShardHolders;
use servo_service::settings::Paging;
use servo_store::{DatabaseConfig, LeaseTtl, Store};
use tokio::sync::{mpsc, watch};
use ulid::Ulid;

pub use crate::shards::{RebuildError, Rebuilt, rebuild};

use crate::core::Limits;
use crate::loops::follow_limits::{self, LimitsFollower};
use crate::loops::{sweep_bus, sweep_ledger};
use crate::metrics::Metrics;
use crate::plan_batcher::PlanBatcher;
use crate::plan_requester::{PlanRequester, plan_runs};
use crate::plans::Plans;
use crate::reads::Reads;
use crate::rpc::{CommandRouter, Scheduler};
use crate::run_ids::RunIds;
use crate::run_lookup::RunLookup;
use crate::shards::{LaneContext, LeaseLoop, Shards, UNPLANNED_QUEUED_MAX, UnplannedRun};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
    pub paging: Paging,
    pub scheduler: Section,
}

/// The `[scheduler]` section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// The secret from which run ids are derived: at least 32 bytes, the same for all instances,
    /// and never changed.
    pub run_id_secret: String,
    /// The address at which other services reach this instance. Defaults to the address it listens
    /// on.
    pub address: Option<String>,
    /// How long a lease lasts: the shards of an instance that went silent move after this time.
    #[serde(
        default = "lease_ttl",
        deserialize_with = "servo_mesh::config::duration"
    )]
    pub lease_ttl: Duration,
}

fn lease_ttl() -> Duration {
    Duration::from_secs(5)
}

/// Serves the API until the process drains.
pub fn start(mesh: Mesh<Config>) -> ServiceFuture {
    Box::pin(serve(mesh))
}

async fn serve(mesh: Mesh<Config>) -> Result<(), Fault> {
    let settings = Settings::read(&mesh)?;
    let engine = Engine::start(&mesh, &settings);
    let scheduler = engine.service(&mesh, &settings);
    let follower = LimitsFollower {
        quota: mesh.peer(Service::Quota),
        limits_tx: engine.limits_tx.into(),
        shards: engine.shards.clone(),
    };
    let planner = mesh.spawn(
        "plan requester",
        plan_runs(engine.unplanned, engine.requester),
    );
    let keeper = LeaseLoop::new(
        &settings.store,
        engine.shards,
        &Ulid::generate().to_string(),
        &settings.address,
        settings.lease_ttl,
    );
    let served = serve_loops(
        mesh,
        &settings,
        scheduler,
        follower,
        &keeper,
        engine.bus_doorbell,
    )
    .await;
    keeper.leave().await;
    planner.abort();
    served
}

/// The checked configuration, and the store it names.
struct Settings {
    store: Store,
    run_ids: RunIds,
    tokens: PageTokens,
    lease_ttl: LeaseTtl,
    address: String,
}

impl Settings {
    fn read(mesh: &Mesh<Config>) -> Result<Settings, Fault> {
        let Config {
            database,
            paging,
            scheduler: section,
        } = mesh.config();
        let listen = mesh.common().server.address(Service::Scheduler);
        Ok(Settings {
            store: Store::connect(Service::Scheduler, database)?,
            run_ids: RunIds::new(&section.run_id_secret)
                .map_err(|error| Fault::config("scheduler.run_id_secret", error))?,
            tokens: paging.tokens()?,
            lease_ttl: LeaseTtl::new(section.lease_ttl)
                .map_err(|error| Fault::config("scheduler.lease_ttl", error.fault))?,
            address: section
                .address
                .clone()
                .unwrap_or_else(|| format!("https://{listen}")),
        })
    }
}

/// The lanes and what feeds them.
struct Engine {
    shards: Shards,
    plans: Plans,
    plan_batcher: PlanBatcher,
    requester: PlanRequester,
    /// Runs of the lanes that need a plan.
    unplanned: mpsc::Receiver<UnplannedRun>,
    limits_tx: watch::Sender<Limits>,
    limits: watch::Receiver<Limits>,
    bus_doorbell: BusDoorbell,
}

impl Engine {
    fn start(mesh: &Mesh<Config>, settings: &Settings) -> Engine {
        let loops = settings.store.loops();
        let plans = Plans::default();
        let plan_batcher = PlanBatcher::start(mesh.peer(Service::Planner));
        let metrics = Metrics::default();
        metrics.register(&mut mesh.metrics());
        let bus_doorbell = BusDoorbell::start(loops.clone(), Topic::Runs);
        let (unplanned_tx, unplanned) = mpsc::channel(UNPLANNED_QUEUED_MAX);
        let (limits_tx, limits) = watch::channel(Limits::default());
        let context = LaneContext {
            plans: plans.clone(),
            plan_requests: unplanned_tx,
            metrics,
            bus_doorbell: Some(bus_doorbell.clone()),
            limits: limits.clone(),
        };
        let shards = Shards::start(&settings.store, context);
        let requester = PlanRequester {
            plan_batcher: plan_batcher.clone(),
            plans: plans.clone(),
            shards: shards.clone(),
            loops: loops.clone(),
            limits: limits.clone(),
        };
        Engine {
            shards,
            plans,
            plan_batcher,
            requester,
            unplanned,
            limits_tx,
            limits,
            bus_doorbell,
        }
    }

    fn service(&self, mesh: &Mesh<Config>, settings: &Settings) -> Scheduler {
        let loops = settings.store.loops();
        Scheduler {
            reads: Reads {
                store: settings.store.clone(),
                plans: self.plans.clone(),
            },
            shards: self.shards.clone(),
            plan_batcher: self.plan_batcher.clone(),
            planner: PlannerMeshServiceClient::new(mesh.peer(Service::Planner)),
            run_lookup: RunLookup::start(loops.clone()),
            router: CommandRouter::new(
                self.shards.clone(),
                ShardHolders::new(mesh, loops, Service::Scheduler, Stream::Execution),
                &settings.address,
            ),
            run_ids: settings.run_ids.clone(),
            tokens: settings.tokens.clone(),
            dispatcher: DispatcherMeshServiceClient::new(mesh.peer(Service::Dispatcher)),
            limits: self.limits.clone(),
        }
    }
}

/// Serves the API and runs the loops until the process drains.
async fn serve_loops(
    mesh: Mesh<Config>,
    settings: &Settings,
    scheduler: Scheduler,
    follower: LimitsFollower,
    keeper: &LeaseLoop,
    bus_doorbell: BusDoorbell,
) -> Result<(), Fault> {
    let lease_loop = keeper.clone();
    let renewal = settings.lease_ttl.get() / 3;
    let bus = settings.store.loops().clone();
    let ledger = settings.store.loops().clone();
    let scheduler = Arc::new(scheduler);
    mesh.serve(SchedulerServiceServer::from_arc(scheduler.clone()))
        .and(SystemServiceServer::from_arc(scheduler.clone()))
        .and(SchedulerMeshServiceServer::from_arc(scheduler))
        .ready_when(settings.store.readiness())
        .with_loop(
            "keep shards",
            Pace::every(renewal).retried_within(renewal),
            move || lease_loop.clone().run_once(),
        )
        .with_loop(
            "limits",
            Pace::every(follow_limits::EVERY).interrupted_by_drain(),
            move || follower.clone().run_once(),
        )
        .with_loop("sweep bus", Pace::every(sweep_bus::EVERY), move || {
            sweep_bus::run_once(bus_doorbell.clone(), bus.clone())
        })
        .with_loop(
            "sweep ledger",
            Pace::every(sweep_ledger::EVERY),
            move || sweep_ledger::run_once(ledger.clone()),
        )
        .until_signal()
        .await
}
