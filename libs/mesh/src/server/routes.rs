//! Routing: which service handles a path, and the properties of the method.

use std::collections::HashMap;
use std::convert::Infallible;

use http::{Request, Response};
use servo_proto::access::{self, Method};
use tonic::body::Body;
use tonic::server::NamedService;
use tower::Service;
use tower::util::BoxCloneSyncService;

use super::deadline::Wait;

const BUILT_IN: [&str; 2] = ["/grpc.health.v1.", "/grpc.reflection."];
const SERVER_INFO: &str = "servo.v1.MeshService";

/// A service that handles raw requests.
pub type Handler = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// The classification of a path.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// Health and reflection, available to every connected client.
    BuiltIn,
    Method(&'static Method),
    /// Not a method of servo.v1; only the fallback handler may know it.
    Unknown,
}

impl Target {
    pub(super) fn of(path: &str) -> Target {
        if BUILT_IN.iter().any(|prefix| path.starts_with(prefix)) {
            return Target::BuiltIn;
        }
        access::method_of(path).map_or(Target::Unknown, Target::Method)
    }

    pub(super) fn wait(self) -> Wait {
        match self {
            Target::Method(method) if method.server_streaming => Wait::Stream,
            Target::BuiltIn => Wait::Unlimited,
            Target::Method(_) | Target::Unknown => Wait::Unary,
        }
    }

    /// Streams live long, so they have a separate limit and end when the service drains.
    pub(super) fn is_stream(self) -> bool {
        self.wait() != Wait::Unary
    }

    /// These calls must be answered in every state of the service.
    pub(super) fn is_built_in(self) -> bool {
        matches!(self, Target::BuiltIn)
            || matches!(self, Target::Method(method) if method.service == SERVER_INFO)
    }

    /// One label per method of the API, so that invented paths do not create metric series.
    pub(super) fn label(self) -> &'static str {
        match self {
            Target::BuiltIn => "built-in",
            Target::Method(method) => &method.path,
            Target::Unknown => "unknown",
        }
    }
}

/// The services of this process by name (`servo.v1.SchedulerService`).
#[derive(Clone, Default)]
pub(super) struct Routes {
    services: HashMap<&'static str, Handler>,
    fallback: Option<Handler>,
}

impl Routes {
    pub(super) fn add<S>(&mut self, service: S)
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
        S: NamedService + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
        self.services
            .insert(S::NAME, BoxCloneSyncService::new(service));
    }

    pub(super) fn set_fallback(&mut self, handler: Handler) {
        self.fallback = Some(handler);
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        self.services.keys().copied().collect()
    }

    pub(super) fn handler(&self, path: &str) -> Option<Handler> {
        let service = path.strip_prefix('/')?.split('/').next()?;
        self.services
            .get(service)
            .or(self.fallback.as_ref())
            .cloned()
    }
}
