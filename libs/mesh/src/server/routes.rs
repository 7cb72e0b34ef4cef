//! Which service answers a path, and what is known about the method.

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

/// A service that takes requests as they come.
pub type Handler = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// What a path means.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// Health and reflection, open to everybody who got through the exposure.
    BuiltIn,
    Method(&'static Method),
    /// Nothing of servo.v1; only a handler for everything may know it.
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
            Target::Method(method) if method.server_streaming => Wait::ForAStream,
            Target::BuiltIn => Wait::Unlimited,
            Target::Method(_) | Target::Unknown => Wait::ForOneAnswer,
        }
    }

    /// Streams live long: they have a limit of their own and end when the service drains.
    pub(super) fn is_stream(self) -> bool {
        self.wait() != Wait::ForOneAnswer
    }

    /// Must be answered whatever state the service is in.
    pub(super) fn is_about_the_service(self) -> bool {
        matches!(self, Target::BuiltIn)
            || matches!(self, Target::Method(method) if method.service == SERVER_INFO)
    }

    /// One label per method of the API, so that made-up paths make no series.
    pub(super) fn label(self) -> &'static str {
        match self {
            Target::BuiltIn => "built-in",
            Target::Method(method) => &method.path,
            Target::Unknown => "unknown",
        }
    }
}

/// The services of this process by their names (`servo.v1.SchedulerService`).
#[derive(Clone, Default)]
pub(super) struct Routes {
    services: HashMap<&'static str, Handler>,
    everything_else: Option<Handler>,
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
        self.everything_else = Some(handler);
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        self.services.keys().copied().collect()
    }

    pub(super) fn handler(&self, path: &str) -> Option<Handler> {
        let service = path.strip_prefix('/')?.split('/').next()?;
        self.services
            .get(service)
            .or(self.everything_else.as_ref())
            .cloned()
    }
}
