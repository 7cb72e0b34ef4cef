//! The handle that a service gets when it starts: its configuration, its peers, and how to serve.

use std::convert::Infallible;
use std::sync::{Arc, MutexGuard};

use http::{Request, Response};
use prometheus_client::registry::Registry;
use servo_model::Service;
use tokio::task::JoinHandle;
use tonic::body::Body;
use tonic::server::NamedService;

use crate::clock;
use crate::config::Common;
use crate::error::Error;
use crate::health::Readiness;
use crate::holders::Holders;
use crate::metrics::Metrics;
use crate::peer::Peer;
use crate::runtime::Runtime;
use crate::server::{Handler, Serving};
use crate::settings::Settings;
use crate::shutdown::Shutdown;
use crate::tls::{Exposure, Tls};

/// One service in this process. A process may run several, each with its own settings.
pub struct Mesh<C> {
    runtime: Arc<Runtime>,
    own: Arc<C>,
}

impl<C> Mesh<C> {
    pub fn new(settings: Settings<C>, shutdown: Shutdown) -> Mesh<C> {
        let Settings {
            service,
            common,
            own,
            tls,
        } = settings;
        let runtime = Runtime {
            service,
            common,
            tls,
            metrics: Metrics::new(service),
            readiness: Readiness::new(),
            shutdown,
            started_at: clock::now(),
        };
        Mesh {
            runtime: Arc::new(runtime),
            own: Arc::new(own),
        }
    }

    pub fn service(&self) -> Service {
        self.runtime.service
    }

    /// The service's own configuration sections.
    pub fn config(&self) -> &C {
        &self.own
    }

    pub fn common(&self) -> &Common {
        &self.runtime.common
    }

    pub fn shutdown(&self) -> &Shutdown {
        &self.runtime.shutdown
    }

    pub fn tls(&self) -> &Tls {
        &self.runtime.tls
    }

    /// Starts an actor of this service: a task that owns state which the process cannot do without.
    /// The process ends with the actor's name in the log when it panics, see
    /// [`servo_actor::spawn`].
    pub fn spawn(
        &self,
        name: &'static str,
        actor: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        servo_actor::spawn(name, actor)
    }

    /// The registry for the service's own metrics; every name gets the prefix `servo_`.
    pub fn metrics(&self) -> MutexGuard<'_, Registry> {
        self.runtime.metrics.registry()
    }

    /// A client of another service, for its generated stub:
    /// `PlannerServiceClient::new(mesh.peer(…))`. It connects at the first call and reconnects when
    /// necessary.
    pub fn peer(&self, service: Service) -> Peer {
        let address = self.runtime.common.peers.address(service);
        // The address was checked when the configuration was read.
        Peer::new(
            self.runtime.clone(),
            service,
            address.parse().unwrap_or_default(),
        )
    }

    /// A client of one instance of a service, such as the holder of a shard. Keep the peer, because
    /// it owns the connection.
    pub fn peer_at(&self, service: Service, address: &str) -> Result<Peer, Error> {
        Ok(Peer::new(
            self.runtime.clone(),
            service,
            crate::peer::parse_address(service, address)?,
        ))
    }

    /// The instances of a service that hold shards; empty until the caller provides them.
    pub fn holders(&self, service: Service) -> Holders {
        Holders::new(self.runtime.clone(), service)
    }

    /// Serves an API to the mesh: callers present a certificate, and the method's access rule
    /// decides.
    pub fn serve<S>(&self, service: S) -> Serving
    where
        S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
        S: NamedService + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
        self.serving(Exposure::Mesh).and(service)
    }

    /// Serves the public: a certificate is optional, no access rule is applied, and `handler`
    /// authenticates the caller. Caller metadata sent by clients is removed before `handler` sees
    /// the request.
    pub fn serve_public(&self, handler: Handler) -> Serving {
        self.serving(Exposure::Public).with_fallback(handler)
    }

    /// Serves only the methods that every service has, with this exposure.
    pub fn serving(&self, exposure: Exposure) -> Serving {
        Serving::new(self.runtime.clone(), exposure)
    }
}

impl<C> Clone for Mesh<C> {
    fn clone(&self) -> Mesh<C> {
        Mesh {
            runtime: self.runtime.clone(),
            own: self.own.clone(),
        }
    }
}
