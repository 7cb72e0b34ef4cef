//! Serving: what a service answers with, when it is ready, which loops it runs, until it is told to stop.

mod accept;
mod access;
mod body;
pub(crate) mod deadline;
mod gate;
mod messages;
mod probe;
mod routes;

use std::convert::Infallible;
use std::fmt::Display;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use http::{Request, Response};
use servo_proto::v1::mesh_service_server::MeshServiceServer;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic::body::Body;
use tonic::server::NamedService;
use tower::Service;
use tracing::{Instrument, info, info_span};

pub use routes::Handler;

use self::accept::Listener;
use self::gate::Gate;
use self::probe::Probe;
use self::routes::Routes;
use crate::fault::Fault;
use crate::health::ServerInfo;
use crate::loops::{self, Pace, Progress};
use crate::mesh::Core;
use crate::tls::Exposure;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A service about to be served; made by [`crate::Mesh::serve`].
#[must_use = "nothing is served before `until_signal`"]
pub struct Serving {
    core: Arc<Core>,
    exposure: Exposure,
    routes: Routes,
    public: Option<Public>,
    ready: Option<Task>,
    loops: Vec<Task>,
}

/// A second port that is open to everybody.
struct Public {
    address: SocketAddr,
    /// The key that sets it.
    key: &'static str,
    handler: Handler,
}

impl Serving {
    pub(crate) fn new(core: Arc<Core>, exposure: Exposure) -> Serving {
        Serving {
            core,
            exposure,
            routes: Routes::default(),
            public: None,
            ready: None,
            loops: Vec::new(),
        }
    }

    /// Serves everybody on a further port, for clients without a certificate: `handler` finds out who calls. `key` names
    /// the setting of the address.
    pub fn with_public_port(
        mut self,
        address: SocketAddr,
        key: &'static str,
        handler: Handler,
    ) -> Serving {
        self.public = Some(Public {
            address,
            key,
            handler,
        });
        self
    }

    /// Serves one more API on the same port.
    pub fn and<S>(mut self, service: S) -> Serving
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
        S: NamedService + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
        self.routes.add(service);
        self
    }

    /// Hands every call that no added service answers to `handler`, as it came.
    pub fn with_fallback(mut self, handler: Handler) -> Serving {
        self.routes.set_fallback(handler);
        self
    }

    /// The service is ready while `check` answers Ok. Until it first does, calls are refused with the reason
    /// and loops wait; afterwards health follows it.
    pub fn ready_when<F, Fut, E>(mut self, check: F) -> Serving
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Display + Send + 'static,
    {
        let (readiness, every) = (
            self.core.readiness.clone(),
            self.core.common.server.ready_every,
        );
        self.ready = Some(Box::pin(
            async move { readiness.follow(every, check).await },
        ));
        self
    }

    /// Repeats `run_once` beside the service, from when it is ready until it drains.
    pub fn with_loop<F, Fut, P, E>(mut self, name: &'static str, pace: Pace, run_once: F) -> Serving
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<P, E>> + Send + 'static,
        P: Progress + Send + 'static,
        E: Display + Send + 'static,
    {
        let (readiness, shutdown) = (self.core.readiness.clone(), self.core.shutdown.clone());
        let watch = loops::Watch {
            shutdown: shutdown.clone(),
            metrics: self.core.metrics.clone(),
        };
        self.loops.push(Box::pin(async move {
            tokio::select! {
                () = readiness.until_ready() => loops::repeat(name, pace, watch, run_once).await,
                () = shutdown.draining() => {}
            }
        }));
        self
    }

    /// Opens the ports. Nothing is answered before [`Bound::until_signal`].
    pub async fn bind(self) -> Result<Bound, Fault> {
        let (server, service) = (&self.core.common.server, self.core.service);
        let api = accept::bind(server.address(service), "server.listen").await?;
        let probe = accept::bind(server.metrics_address(service), "server.metrics_listen").await?;
        let public = match &self.public {
            Some(public) => Some(accept::bind(public.address, public.key).await?),
            None => None,
        };
        Ok(Bound {
            serving: self,
            api,
            probe,
            public,
        })
    }

    /// Serves until SIGTERM or SIGINT, then finishes what is under way within `server.grace`.
    pub async fn until_signal(self) -> Result<(), Fault> {
        self.bind().await?.until_signal().await
    }
}

/// A service whose ports are open.
pub struct Bound {
    serving: Serving,
    api: TcpListener,
    probe: TcpListener,
    public: Option<TcpListener>,
}

impl Bound {
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.api.local_addr()
    }

    pub fn metrics_address(&self) -> std::io::Result<SocketAddr> {
        self.probe.local_addr()
    }

    /// See [`Serving::until_signal`].
    pub async fn until_signal(self) -> Result<(), Fault> {
        let service = self.serving.core.service.name();
        self.run().instrument(info_span!("service", service)).await
    }

    async fn run(self) -> Result<(), Fault> {
        let core = self.serving.core.clone();
        info!(address = %self.address()?, metrics = %self.metrics_address()?, "listening");
        let Bound {
            serving,
            api,
            probe,
            public,
        } = self;
        let mut beside = JoinSet::new();
        let probe_server = Probe {
            metrics: core.metrics.clone(),
            readiness: core.readiness.clone(),
            tls: core.tls.clone(),
        };
        spawn(&mut beside, probe_server.run(probe));
        spawn(&mut beside, core.tls.clone().watch_files());
        let (listeners, loops) = serving.start(api, public, &mut beside)?;
        let told = core.clone();
        spawn(&mut beside, async move {
            told.shutdown.draining().await;
            told.readiness.drain();
        });
        let listeners = futures::future::try_join_all(listeners.into_iter().map(Listener::run));
        tokio::try_join!(listeners, drain_loops(loops, &core))?;
        info!("stopped");
        Ok(())
    }
}

impl Serving {
    /// Adds what every service answers, and starts what runs beside the listener.
    fn start(
        mut self,
        api: TcpListener,
        public: Option<TcpListener>,
        beside: &mut JoinSet<()>,
    ) -> Result<(Vec<Listener>, JoinSet<()>), Fault> {
        let core = self.core;
        let (reporter, health) = tonic_health::server::health_reporter();
        let info = ServerInfo {
            service: core.service,
            started_at: core.started_at,
            readiness: core.readiness.clone(),
        };
        self.routes.add(MeshServiceServer::new(info));
        let announced = self.routes.names();
        self.routes.add(health);
        self.routes.add(reflection()?);
        let readiness = core.readiness.clone();
        spawn(beside, async move {
            readiness.announce(reporter, announced).await
        });
        match self.ready {
            Some(ready) => spawn(beside, ready),
            None => core.readiness.ready(),
        }
        let mut loops = JoinSet::new();
        for task in self.loops {
            spawn(&mut loops, task);
        }
        let listener = |tcp, exposure, routes| {
            let gate = Arc::new(Gate::new(core.clone(), routes, exposure));
            Listener {
                tcp,
                exposure,
                gate,
                core: core.clone(),
            }
        };
        let mut listeners = vec![listener(api, self.exposure, self.routes)];
        if let Some((tcp, Public { handler, .. })) = public.zip(self.public) {
            let mut routes = Routes::default();
            routes.set_fallback(handler);
            listeners.push(listener(tcp, Exposure::Public, routes));
        }
        Ok((listeners, loops))
    }
}

fn reflection() -> Result<
    impl Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
    + NamedService
    + Clone
    + Send
    + Sync,
    Fault,
> {
    Ok(tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(servo_proto::DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()?)
}

/// A pass under way when the process drains is finished, within the grace period.
async fn drain_loops(loops: JoinSet<()>, core: &Core) -> Result<(), Fault> {
    core.shutdown.draining().await;
    core.drain(
        loops,
        "loop passes were still under way at the end of server.grace",
    )
    .await;
    Ok(())
}

fn spawn(tasks: &mut JoinSet<()>, task: impl Future<Output = ()> + Send + 'static) {
    tasks.spawn(task.in_current_span());
}
