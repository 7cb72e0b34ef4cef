//! The dispatcher gives ready tasks to workers in fair order.
//!
//! It leases admission shards and is the only instance that admits tasks of their tenants.
//!
//! - [`core`]: admission as pure decisions: fair share, limits, which task goes to which worker.
//! - [`engine`]: the actor that owns admission in memory, with its helpers: streams from
//!   schedulers, streams to workers, plans, inputs and the push queue. Its page explains how a
//!   ready task becomes an envelope.
//! - [`envelope`], [`inputs`], [`stored_plan`]: building and signing one envelope.
//! - [`loops`]: background work that the mesh repeats: keeping leases, keeping a stream open to
//!   every scheduler, applying commands, following limits, recording workers.
//! - [`rpc`]: the API, one file per method. [`store`]: the SQL. [`wire`]: conversions of messages.
//!
//! **Stays absent:** writes to tasks. A claim is an event, and the scheduler that holds the run's
//! shard appends it.

mod admission_shards;
mod config;
pub mod core;
mod engine;
mod envelope;
mod inputs;
mod loops;
mod metrics;
mod rpc;
mod store;
mod stored_plan;
mod wire;

pub use config::{Config, Push, Section};

use std::sync::Arc;
use std::time::Duration;

use servo_mesh::config::BadKeys;
use servo_mesh::{Doorbell, Fault, Mesh, Pace, PageTokens, ServiceFuture, Serving};
use servo_model::{Service, Stream, WorkerId};
use servo_proto::mesh::v1::dispatcher_mesh_service_server::DispatcherMeshServiceServer;
use servo_proto::v1::dispatcher_service_server::DispatcherServiceServer;
use servo_queue::{ClientTls, PostgresQueue, Pusher, QueueSettings};
use servo_store::{LeaseTtl, Leases, Store};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::admission_shards::{AdmissionLeases, AdmissionShards};
use crate::core::push_targets::PushTarget;
use crate::engine::{
    Engine, EngineActor, InputReader, Plans, PushQueue, Redirects, engine, queue_names,
};
use crate::envelope::Signer;
use crate::loops::commands::CommandLoop;
use crate::loops::registry::{self, RegistryLoop};
use crate::loops::scheduler_streams::SchedulerStreams;
use crate::loops::{limits, push_workers};
use crate::metrics::Metrics;
use crate::rpc::Dispatcher;

/// How often the holders of execution shards are read when no doorbell rings.
const STREAMS_INTERVAL: Duration = Duration::from_secs(5);
/// How often commands that other instances accepted are read.
const COMMANDS_INTERVAL: Duration = Duration::from_secs(1);
/// Delay before a broken stream of limits is opened again.
const LIMITS_RETRY: Duration = Duration::from_secs(5);

/// Serves the API until the process drains.
pub fn start(mesh: Mesh<Config>) -> ServiceFuture {
    Box::pin(serve(mesh))
}

async fn serve(mesh: Mesh<Config>) -> Result<(), Fault> {
    let (parts, actor) = Parts::build(&mesh)?;
    mesh.spawn("engine", actor.run());
    parts.ring_when_shards_change();
    let released = parts.release_when_draining(&mesh);
    parts.start_pusher(&mesh);
    let shutdown = mesh.shutdown().clone();
    let serving = parts.with_shard_loops(&mesh, parts.api(&mesh));
    let served = parts.with_worker_loops(&mesh, serving).until_signal().await;
    if shutdown.is_draining() {
        let _ = released.await;
    }
    served
}

/// Shared by the API, the loops and the background tasks.
struct Parts {
    store: Store,
    signer: Signer,
    page_tokens: PageTokens,
    metrics: Metrics,
    engine: Engine,
    /// `None` when pushes are off.
    queue: Option<PostgresQueue>,
    leases: Arc<AdmissionLeases>,
    lease_ttl: Duration,
    streams_doorbell: Doorbell,
    commands_doorbell: Doorbell,
    push_workers_doorbell: Doorbell,
}

impl Parts {
    fn build(mesh: &Mesh<Config>) -> Result<(Parts, EngineActor), Fault> {
        let config = &mesh.config().dispatcher;
        let store = Store::connect(Service::Dispatcher, &mesh.config().database)?;
        let ttl = LeaseTtl::new(config.lease_ttl)
            .map_err(|bad| Fault::config("dispatcher.lease_ttl", bad.fault))?;
        let signer = signer(mesh.config())?;
        let queues = queue_names(config.push.queues);
        let queue = push_queue(&store, &config.push, &queues)?;
        let metrics = Metrics::default();
        metrics.register(&mut mesh.metrics());
        let redirects = Redirects {
            loops: store.loops().clone(),
            own_address: address(mesh),
        };
        let (engine, actor) = engine(
            signer.clone(),
            metrics.clone(),
            |engine| Plans::new(engine, store.loops().clone(), config.plan_cache),
            |engine| InputReader::start(engine, store.loops().clone()),
            |engine| PushQueue::start(engine, queue.clone(), queues),
            redirects,
        );
        let parts = Parts {
            leases: Arc::new(lease_keeper(mesh, &store, &engine, ttl)),
            queue: (!config.push.targets.is_empty()).then_some(queue),
            lease_ttl: ttl.get(),
            streams_doorbell: Doorbell::new(),
            commands_doorbell: Doorbell::new(),
            push_workers_doorbell: Doorbell::new(),
            page_tokens: mesh.config().paging.tokens()?,
            store,
            signer,
            metrics,
            engine,
        };
        Ok((parts, actor))
    }

    /// Wakes the loops that depend on which admission shards are held here.
    fn ring_when_shards_change(&self) {
        let mut held = self.engine.held();
        let doorbells = [
            self.streams_doorbell.clone(),
            self.push_workers_doorbell.clone(),
        ];
        servo_actor::spawn("shard changes", async move {
            while held.changed().await.is_ok() {
                doorbells.iter().for_each(Doorbell::ring);
            }
        });
    }

    /// Releases all leases as soon as the process drains, so that other instances admit tasks while
    /// this one finishes its calls.
    fn release_when_draining(&self, mesh: &Mesh<Config>) -> JoinHandle<()> {
        let shutdown = mesh.shutdown().clone();
        let leases = self.leases.clone();
        mesh.spawn("lease release", async move {
            shutdown.draining().await;
            leases.leave().await;
        })
    }

    /// Pushes envelopes until the process drains, and finishes those in flight.
    fn start_pusher(&self, mesh: &Mesh<Config>) {
        let Some(queue) = self.queue.clone() else {
            return;
        };
        let tls = mesh.tls().clone();
        let tls = ClientTls::new(move || tls.web_client_config());
        let stop = CancellationToken::new();
        let pusher = Pusher::new(queue, Some(tls), uuid::Uuid::from_bytes(rand::random()));
        mesh.spawn("pusher", pusher.run(stop.clone()));
        let shutdown = mesh.shutdown().clone();
        mesh.spawn("pusher stop", async move {
            shutdown.draining().await;
            stop.cancel();
        });
    }

    fn api(&self, mesh: &Mesh<Config>) -> Serving {
        let dispatcher = Dispatcher {
            mesh: mesh.clone(),
            store: self.store.clone(),
            engine: self.engine.clone(),
            signer: self.signer.clone(),
            page_tokens: self.page_tokens.clone(),
            commands_changed: self.commands_doorbell.clone(),
            push_workers_changed: self.push_workers_doorbell.clone(),
            connections: Arc::default(),
        };
        let dispatcher = Arc::new(dispatcher);
        mesh.serve(DispatcherServiceServer::from_arc(dispatcher.clone()))
            .and(DispatcherMeshServiceServer::from_arc(dispatcher))
            .ready_when(self.store.readiness())
    }

    /// The loops that keep admission shards, their streams and their commands.
    fn with_shard_loops(&self, mesh: &Mesh<Config>, serving: Serving) -> Serving {
        let leases = self.leases.clone();
        let streams = Arc::new(SchedulerStreams::new(
            mesh,
            &self.store,
            self.engine.clone(),
            &self.streams_doorbell,
        ));
        let commands = Arc::new(CommandLoop::new(
            &self.store,
            self.engine.clone(),
            self.leases.clone(),
        ));
        // Renewal runs and is retried every third of the TTL, because a lease expires when its loop
        // pauses for longer than the TTL.
        let renewal = Pace::every(self.lease_ttl / 3).retried_within(self.lease_ttl / 3);
        serving
            .with_loop("leases", renewal, move || {
                let leases = leases.clone();
                async move { leases.run_once().await.map(|round| round.again_in) }
            })
            .with_loop(
                "streams",
                Pace::every(STREAMS_INTERVAL).woken_by(&self.streams_doorbell),
                move || {
                    let streams = streams.clone();
                    async move { streams.run_once().await }
                },
            )
            .with_loop(
                "commands",
                Pace::every(COMMANDS_INTERVAL).woken_by(&self.commands_doorbell),
                move || {
                    let commands = commands.clone();
                    async move { commands.run_once().await }
                },
            )
    }

    /// The loops that follow limits and keep the registry of workers.
    fn with_worker_loops(self, mesh: &Mesh<Config>, serving: Serving) -> Serving {
        let (store, engine) = (self.store.clone(), self.engine.clone());
        let push_targets: Arc<[String]> = mesh.config().dispatcher.push.targets.clone().into();
        let quota = mesh.peer(Service::Quota);
        let limits_engine = self.engine.clone();
        let registry = Arc::new(RegistryLoop {
            store: self.store,
            engine: self.engine,
            metrics: self.metrics,
            queue: self.queue,
        });
        let signer = self.signer;
        serving
            .with_loop(
                "pushed_workers",
                Pace::every(push_workers::REFRESH_INTERVAL).woken_by(&self.push_workers_doorbell),
                move || {
                    push_workers::run_once(
                        store.clone(),
                        engine.clone(),
                        signer.clone(),
                        push_targets.clone(),
                    )
                },
            )
            .with_loop(
                "limits",
                Pace::every(LIMITS_RETRY).interrupted_by_drain(),
                move || limits::run_once(quota.clone(), limits_engine.clone()),
            )
            .with_loop(
                "registry",
                Pace::every(registry::RECORD_INTERVAL),
                move || {
                    let registry = registry.clone();
                    async move { registry.run_once().await }
                },
            )
    }
}

fn lease_keeper(
    mesh: &Mesh<Config>,
    store: &Store,
    engine: &Engine,
    ttl: LeaseTtl,
) -> AdmissionLeases {
    let instance = WorkerId::new(servo_mesh::now().unix_ms(), rand::random()).to_string();
    let leases = Leases::new(
        store.loops(),
        Stream::Dispatch,
        &instance,
        &address(mesh),
        ttl,
    );
    AdmissionLeases::new(store, leases, AdmissionShards::new(engine.clone()))
}

fn push_queue(store: &Store, push: &Push, names: &[Arc<str>]) -> Result<PostgresQueue, Fault> {
    if let Some(bad) = push
        .targets
        .iter()
        .find(|target| PushTarget::parse(target).is_none())
    {
        let fault = format!("`{bad}` is not an address; write http:// or https:// and a host");
        return Err(Fault::config("dispatcher.push.targets", fault));
    }
    let settings = |name: &Arc<str>| QueueSettings {
        max_per_second: push.max_per_second.into(),
        max_concurrent: push.max_concurrent,
        ..QueueSettings::new(name.clone())
    };
    PostgresQueue::new(store.clone(), names.iter().map(settings))
        .map_err(|error| Fault::config("dispatcher.push", error))
}

fn address(mesh: &Mesh<Config>) -> String {
    let configured = mesh.config().dispatcher.address.clone();
    configured.unwrap_or_else(|| {
        format!(
            "https://{}",
            mesh.common().server.address(Service::Dispatcher)
        )
    })
}

fn signer(config: &Config) -> Result<Signer, Fault> {
    let attempts = &config.attempts;
    let callbacks = attempts.key_ring()?;
    let (kid, secret) = attempts
        .signing_keys
        .current()
        .ok_or_else(|| Fault::config("attempts.signing_keys", BadKeys::None))?;
    Ok(Signer {
        callbacks,
        envelope_secret: envelope::hmac(secret, b"envelope secret v1").into(),
        envelope_key_id: kid.into(),
        callback_url: config.dispatcher.callback_url.as_str().into(),
        output_base: attempts.output_base.as_str().into(),
        heartbeat_interval: attempts.heartbeat_interval,
        grace: attempts.grace()?,
    })
}
