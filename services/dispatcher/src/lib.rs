//! The dispatcher hands ready tasks to workers in fair order.
//!
//! It leases admission shards and is the only admitter of their tenants. One task, the engine
//! ([`loops::engine`]), keeps what is ready, what is live and who can work in memory, fed by a stream from every
//! scheduler ([`loops::streams`]) and one from every worker ([`rpc`]); it chooses by the rules of [`core`], sends the
//! claims to the runs' owners and, once they count, signed envelopes ([`envelope`]) to the workers: on their streams,
//! or through the queue to those that listen ([`loops::pushes`]).
//!
//! **Stays absent:** writes to tasks; a claim is an event like any other, and its owner appends it.

pub mod core;
mod envelope;
mod inputs;
mod loops;
mod metrics;
mod rpc;
mod store;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use servo_mesh::config::{BadKeys, SigningKeys};
use servo_mesh::{Doorbell, Fault, Life, Mesh, Pace};
use servo_model::limits::{CLOCK_SKEW_MAX, HEARTBEAT_INTERVAL};
use servo_model::presign::SignatureGrace;
use servo_model::{Service, Stream, WorkerId};
use servo_proto::v1::dispatcher_service_server::DispatcherServiceServer;
use servo_queue::{ClientTls, PostgresQueue, Pusher, QueueSettings};
use servo_store::{DatabaseConfig, LeaseTtl, Leases, Store};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::envelope::Signer;
use crate::loops::commands::CommandLoop;
use crate::loops::engine::{Engine, EngineLoop, engine};
use crate::loops::inputs::Reading;
use crate::loops::leases::LeaseLoop;
use crate::loops::moves::Moves;
use crate::loops::plans::Plans;
use crate::loops::pushes::{self, Pushes, queue_names};
use crate::loops::streams::StreamLoop;
use crate::loops::{limits, registry};
use crate::metrics::Metrics;
use crate::rpc::Dispatcher;

/// How often holders of runs are looked up when nothing rang.
const STREAMS_EVERY: Duration = Duration::from_secs(5);
/// How often commands of other instances are looked for.
const COMMANDS_EVERY: Duration = Duration::from_secs(1);
/// How long until a broken stream of limits is followed again.
const LIMITS_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
    #[serde(default)]
    pub dispatcher: Section,
}

/// The `[dispatcher]` section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    /// Where workers and other instances reach this one; `https://` and the listening address unless set.
    pub address: Option<String>,
    /// How long the admission shards of a dead instance stay without a holder.
    #[serde(deserialize_with = "servo_mesh::config::duration")]
    pub lease_ttl: Duration,
    /// Sign callbacks; the first one signs envelopes too. The callback service knows the same keys.
    pub signing_keys: SigningKeys,
    /// Where workers report, when it is not where their envelopes come from.
    pub callback_url: String,
    /// What output folders begin with.
    pub output_base: String,
    /// Time from one beat of an attempt to the next, at most.
    #[serde(deserialize_with = "servo_mesh::config::duration")]
    pub heartbeat_interval: Duration,
    /// How late a signed call may be, and how far clocks may differ; the callback service has the same.
    #[serde(deserialize_with = "servo_mesh::config::duration")]
    pub signature_grace: Duration,
    /// Plans kept in memory.
    #[serde(deserialize_with = "servo_mesh::config::size")]
    pub plan_cache: usize,
    /// Workers with the certificate `spiffe://servo/worker/-` serve every tenant.
    pub shared_workers: bool,
    pub push: Push,
}

/// The `[dispatcher.push]` section: workers that listen instead of asking.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Push {
    /// Where workers may ask to be pushed to, as scheme and host with a port and a path if wanted; without any, pushes
    /// are off.
    pub targets: Vec<String>,
    /// Queues that envelopes are spread over; the same for all instances.
    pub queues: u8,
    /// Pushes of one queue in a second.
    pub max_per_second: u32,
    /// Pushes of one queue that are under way.
    pub max_concurrent: u32,
}

impl Default for Push {
    fn default() -> Push {
        Push {
            targets: Vec::new(),
            queues: 1,
            max_per_second: 500,
            max_concurrent: 100,
        }
    }
}

impl Default for Section {
    fn default() -> Section {
        Section {
            address: None,
            lease_ttl: Duration::from_secs(5),
            signing_keys: SigningKeys::default(),
            callback_url: String::new(),
            output_base: String::new(),
            heartbeat_interval: HEARTBEAT_INTERVAL,
            signature_grace: CLOCK_SKEW_MAX,
            plan_cache: 64 << 20,
            shared_workers: false,
            push: Push::default(),
        }
    }
}

/// Serves the API until the process is told to stop.
pub fn start(mesh: Mesh<Config>) -> Life {
    Box::pin(serve(mesh))
}

async fn serve(mesh: Mesh<Config>) -> Result<(), Fault> {
    let config = &mesh.config().dispatcher;
    let store = Store::connect(Service::Dispatcher, &mesh.config().database)?;
    let ttl = LeaseTtl::new(config.lease_ttl)
        .map_err(|bad| Fault::config("dispatcher.lease_ttl", bad.fault))?;
    let signer = signer(config)?;
    let read_plans = |engine| Plans::new(engine, store.loops().clone(), config.plan_cache);
    let queues = queue_names(config.push.queues);
    let queue = push_queue(&store, &config.push, &queues)?;
    let pushes = |engine| Pushes::start(engine, queue.clone(), queues);
    let read_inputs = |engine| Reading::start(engine, store.loops().clone());
    let metrics = Metrics::default();
    metrics.register(&mut mesh.metrics());
    let moves = Moves {
        loops: store.loops().clone(),
        own_address: address(&mesh),
    };
    let (engine, engine_loop) = engine(
        signer.clone(),
        metrics.clone(),
        read_plans,
        read_inputs,
        pushes,
        moves,
    );
    let (streams_bell, commands_bell, reached_bell) =
        (Doorbell::new(), Doorbell::new(), Doorbell::new());
    let instance = WorkerId::new((wire::now() * 1e3) as u64, rand::random()).to_string();
    let leases = Leases::new(&store, Stream::Dispatch, &instance, &address(&mesh), ttl);
    let leases = Arc::new(LeaseLoop::new(
        &store,
        leases,
        engine.clone(),
        &instance,
        ttl.get(),
    ));
    let streams = Arc::new(StreamLoop::new(
        &mesh,
        &store,
        engine.clone(),
        &streams_bell,
    ));
    let commands = Arc::new(CommandLoop::new(&store, engine.clone(), leases.clone()));
    let dispatcher = Dispatcher {
        mesh: mesh.clone(),
        store: store.clone(),
        engine: engine.clone(),
        signer: signer.clone(),
        commanded: commands_bell.clone(),
        reached: reached_bell.clone(),
        connections: Arc::default(),
    };
    let shutdown = mesh.shutdown().clone();
    let given_back = run_beside(
        &mesh,
        engine_loop,
        &engine,
        [&streams_bell, &reached_bell],
        leases.clone(),
    );
    let measured = (!config.push.targets.is_empty()).then(|| queue.clone());
    if !config.push.targets.is_empty() {
        run_pusher(&mesh, queue);
    }
    let quota = mesh.peer(Service::Quota);
    let (registry_store, registry_engine) = (store.clone(), engine.clone());
    let (pushed_store, pushed_engine) = (store.clone(), engine.clone());
    let allowed: Arc<[String]> = config.push.targets.clone().into();
    // A lease runs out while its loop waits longer than that.
    let renewal = Pace::every(ttl.get() / 3).retried_within(ttl.get() / 3);
    let served = mesh
        .serve(DispatcherServiceServer::new(dispatcher))
        .ready_when(store.readiness())
        .with_loop("leases", renewal.woken_by(leases.bell()), move || {
            let leases = leases.clone();
            async move { leases.run_once().await }
        })
        .with_loop(
            "streams",
            Pace::every(STREAMS_EVERY).woken_by(&streams_bell),
            move || {
                let streams = streams.clone();
                async move { streams.run_once().await }
            },
        )
        .with_loop(
            "commands",
            Pace::every(COMMANDS_EVERY).woken_by(&commands_bell),
            move || {
                let commands = commands.clone();
                async move { commands.run_once().await }
            },
        )
        .with_loop(
            "pushed_workers",
            Pace::every(pushes::LOOK_EVERY).woken_by(&reached_bell),
            move || {
                pushes::look(
                    pushed_store.clone(),
                    pushed_engine.clone(),
                    signer.clone(),
                    allowed.clone(),
                )
            },
        )
        .with_loop("limits", Pace::every(LIMITS_EVERY), move || {
            limits::follow(quota.clone(), engine.clone())
        })
        .with_loop("registry", Pace::every(registry::SEEN_EVERY), move || {
            let (store, engine) = (registry_store.clone(), registry_engine.clone());
            let (metrics, queue) = (metrics.clone(), measured.clone());
            async move {
                registry::measure(&engine, queue.as_ref(), &metrics).await?;
                registry::run_once(store, engine)
                    .await
                    .map_err(tonic::Status::from)
            }
        })
        .until_signal()
        .await;
    if shutdown.is_draining() {
        let _ = given_back.await;
    }
    served
}

/// What is no loop: the engine, the bell for new leases, and giving them back as soon as the process is told to stop, so
/// that others admit while it drains. Answers the way to wait for that.
fn run_beside(
    mesh: &Mesh<Config>,
    engine_loop: EngineLoop,
    engine: &Engine,
    bells: [&Doorbell; 2],
    leases: Arc<LeaseLoop>,
) -> JoinHandle<()> {
    tokio::spawn(engine_loop.run());
    let (mut held, bells) = (engine.held(), bells.map(Doorbell::clone));
    tokio::spawn(async move {
        while held.changed().await.is_ok() {
            bells.iter().for_each(Doorbell::ring);
        }
    });
    let shutdown = mesh.shutdown().clone();
    tokio::spawn(async move {
        shutdown.draining().await;
        if let Err(error) = leases.release_all().await {
            tracing::warn!(%error, "admission shards could not be given back; they run out by themselves");
        }
    })
}

/// Pushes until the process drains; what is under way then ends first.
fn run_pusher(mesh: &Mesh<Config>, queue: PostgresQueue) {
    let tls = mesh.tls().clone();
    let tls = ClientTls::new(move || tls.web_client_config());
    let stop = CancellationToken::new();
    tokio::spawn(
        Pusher::new(queue, Some(tls), uuid::Uuid::from_bytes(rand::random())).run(stop.clone()),
    );
    let shutdown = mesh.shutdown().clone();
    tokio::spawn(async move {
        shutdown.draining().await;
        stop.cancel();
    });
}

fn push_queue(store: &Store, push: &Push, names: &[Arc<str>]) -> Result<PostgresQueue, Fault> {
    if let Some(bad) = push
        .targets
        .iter()
        .find(|target| core::target::Target::parse(target).is_none())
    {
        let fault = format!("`{bad}` is no address; write http:// or https:// and a host");
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

fn signer(config: &Section) -> Result<Signer, Fault> {
    let fault = |fault| Fault::config("dispatcher.signing_keys", fault);
    let callbacks = config.signing_keys.ring().map_err(fault)?;
    let (kid, secret) = config
        .signing_keys
        .current()
        .ok_or_else(|| fault(BadKeys::None))?;
    let grace = SignatureGrace::new(config.signature_grace)
        .map_err(|error| Fault::config("dispatcher.signature_grace", error))?;
    Ok(Signer {
        callbacks,
        envelope_secret: envelope::hmac(secret, b"envelope secret v1").into(),
        envelope_key_id: kid.into(),
        callback_url: config.callback_url.as_str().into(),
        output_base: config.output_base.as_str().into(),
        heartbeat_interval: config.heartbeat_interval,
        grace,
    })
}
