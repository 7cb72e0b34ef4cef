//! Serving: the APIs of a service, its readiness and its loops, until a stop signal.

mod accept;
mod access;
mod body;
pub(crate) mod deadline;
mod messages;
mod pipeline;
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
use self::pipeline::Pipeline;
use self::probe::Probe;
use self::routes::Routes;
use crate::fault::Fault;
use crate::health::ServerInfo;
use crate::loops::{self, Pace, Progress};
use crate::runtime::Runtime;
use crate::tls::Exposure;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A service that is configured but not yet served; made by [`crate::Mesh::serve`].
#[must_use = "nothing is served before `until_signal`"]
pub struct Serving {
    runtime: Arc<Runtime>,
    exposure: Exposure,
    routes: Routes,
    public: Option<Public>,
    ready: Option<Task>,
    loops: Vec<Task>,
}

/// A second port for clients without a certificate.
struct Public {
    address: SocketAddr,
    /// The configuration key of the address.
    key: &'static str,
    handler: Handler,
}

impl Serving {
    pub(crate) fn new(runtime: Arc<Runtime>, exposure: Exposure) -> Serving {
        Serving {
            runtime,
            exposure,
            routes: Routes::default(),
            public: None,
            ready: None,
            loops: Vec::new(),
        }
    }

    /// Serves the public on another port, for clients without a certificate: `handler`
    /// authenticates the caller. `key` names the setting of the address.
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

    /// Passes every call that no added service handles to `handler`, unchanged.
    pub fn with_fallback(mut self, handler: Handler) -> Serving {
        self.routes.set_fallback(handler);
        self
    }

    /// The service is ready while `check` returns Ok. Until it first does, calls are refused with
    /// the reason and loops wait; afterwards it only determines the reported health.
    pub fn ready_when<F, Fut, E>(mut self, check: F) -> Serving
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Display + Send + 'static,
    {
        let (readiness, every) = (
            self.runtime.readiness.clone(),
            self.runtime.common.server.ready_every,
        );
        self.ready = Some(Box::pin(async move { readiness.poll(every, check).await }));
        self
    }

    /// Repeats `run_once` in the background, from when the service is ready until it drains.
    pub fn with_loop<F, Fut, P, E>(mut self, name: &'static str, pace: Pace, run_once: F) -> Serving
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<P, E>> + Send + 'static,
        P: Progress + Send + 'static,
        E: Display + Send + 'static,
    {
        let (readiness, shutdown) = (
            self.runtime.readiness.clone(),
            self.runtime.shutdown.clone(),
        );
        let context = loops::LoopContext {
            shutdown: shutdown.clone(),
            metrics: self.runtime.metrics.clone(),
        };
        self.loops.push(Box::pin(async move {
            tokio::select! {
                () = readiness.until_ready() => loops::repeat(name, pace, context, run_once).await,
                () = shutdown.draining() => {}
            }
        }));
        self
    }

    /// Opens the ports. No call is answered before [`Bound::until_signal`].
    pub async fn bind(self) -> Result<Bound, Fault> {
        let (server, service) = (&self.runtime.common.server, self.runtime.service);
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

    /// Serves until SIGTERM or SIGINT, then finishes calls in flight within `server.grace`.
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
        let service = self.serving.runtime.service.name();
        self.run().instrument(info_span!("service", service)).await
    }

    async fn run(self) -> Result<(), Fault> {
        let runtime = self.serving.runtime.clone();
        info!(address = %self.address()?, metrics = %self.metrics_address()?, "listening");
        let Bound {
            serving,
            api,
            probe,
            public,
        } = self;
        let mut background = JoinSet::new();
        let probe_server = Probe {
            metrics: runtime.metrics.clone(),
            readiness: runtime.readiness.clone(),
            tls: runtime.tls.clone(),
        };
        spawn(&mut background, probe_server.run(probe));
        spawn(&mut background, runtime.tls.clone().watch_files());
        let (listeners, loops) = serving.start(api, public, &mut background)?;
        let draining_runtime = runtime.clone();
        spawn(&mut background, async move {
            draining_runtime.shutdown.draining().await;
            draining_runtime.readiness.drain();
        });
        let listeners = futures::future::try_join_all(listeners.into_iter().map(Listener::run));
        tokio::try_join!(listeners, drain_loops(loops, &runtime))?;
        info!("stopped");
        Ok(())
    }
}

impl Serving {
    /// Adds the APIs that every service has, and starts the background tasks.
    fn start(
        mut self,
        api: TcpListener,
        public: Option<TcpListener>,
        background: &mut JoinSet<()>,
    ) -> Result<(Vec<Listener>, JoinSet<()>), Fault> {
        let runtime = self.runtime;
        let (reporter, health) = tonic_health::server::health_reporter();
        let info = ServerInfo {
            service: runtime.service,
            started_at: runtime.started_at,
            readiness: runtime.readiness.clone(),
        };
        self.routes.add(MeshServiceServer::new(info));
        let names = self.routes.names();
        self.routes.add(health);
        self.routes.add(reflection()?);
        let readiness = runtime.readiness.clone();
        spawn(background, async move {
            readiness.announce(reporter, names).await
        });
        match self.ready {
            Some(ready) => spawn(background, ready),
            None => runtime.readiness.ready(),
        }
        let mut loops = JoinSet::new();
        for task in self.loops {
            spawn(&mut loops, task);
        }
        let listener = |tcp, exposure, routes| {
            let pipeline = Arc::new(Pipeline::new(runtime.clone(), routes, exposure));
            Listener {
                tcp,
                exposure,
                pipeline,
                runtime: runtime.clone(),
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

/// A pass in progress when the process drains is finished, within the grace period.
async fn drain_loops(loops: JoinSet<()>, runtime: &Runtime) -> Result<(), Fault> {
    runtime.shutdown.draining().await;
    runtime
        .drain(
            loops,
            "loop passes were still running at the end of server.grace",
        )
        .await;
    Ok(())
}

fn spawn(tasks: &mut JoinSet<()>, task: impl Future<Output = ()> + Send + 'static) {
    tasks.spawn(task.in_current_span());
}
