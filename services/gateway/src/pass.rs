//! Passing a call on: the ticket, the scope, the metadata, the service behind.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response};
use servo_mesh::{Caller, Error, FirstMessage, Handler, Mesh, Peer, PeerIdentity, Reason};
use servo_model::Service;
use servo_proto::access::{self, Method};
use servo_proto::scope::{self, Scope, ScopeKind};
use servo_proto::v1::access_service_server::AccessServiceServer;
use servo_store::Store;
use tonic::Status;
use tonic::body::Body;
use tower::util::BoxCloneSyncService;
use tower::{ServiceExt, service_fn};
use ulid::Ulid;

use crate::Config;
use crate::admitting::Admitting;
use crate::core::door::{self, Shut, Ticket};
use crate::core::keys::{ApiKeys, Principal};
use crate::rpc::Access;

/// Belongs to whoever admits the tenant's tasks.
const WORKERS_STREAM: &str = "/servo.v1.DispatcherService/PullTasks";

/// The way through the gateway.
#[derive(Clone)]
pub(crate) struct Pass {
    keys: Arc<ApiKeys>,
    peers: Arc<HashMap<Service, Peer>>,
    admitting: Arc<Admitting>,
    access: AccessServiceServer<Access>,
}

impl Pass {
    pub(crate) fn new(
        mesh: &Mesh<Config>,
        store: &Store,
        keys: Arc<ApiKeys>,
        access: AccessServiceServer<Access>,
    ) -> Pass {
        let peers = Service::ALL
            .into_iter()
            .filter(|service| *service != Service::Gateway);
        let peers = peers.map(|service| (service, mesh.peer(service))).collect();
        Pass {
            keys,
            peers: Arc::new(peers),
            admitting: Arc::new(Admitting::new(mesh, store)),
            access,
        }
    }

    pub(crate) fn into_handler(self) -> Handler {
        BoxCloneSyncService::new(service_fn(move |request| {
            let pass = self.clone();
            async move {
                Ok::<_, Infallible>(
                    pass.answer(request)
                        .await
                        .unwrap_or_else(|status| status.into_http()),
                )
            }
        }))
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, Status> {
        let path = request.uri().path().to_owned();
        let method = access::method_of(&path);
        let ticket = door::ticket(method).map_err(|shut| refusal(shut, &path))?;
        let principal = self.principal(ticket, request.headers())?;
        let method = method.ok_or_else(|| refusal(Shut::Unknown, &path))?;
        let (request, scope) = read_scope(request, method).await?;
        let tenant = scope
            .as_ref()
            .map(|scope| scope.tenant.clone())
            .unwrap_or_default();
        let request = with_caller(request, principal, scope)?;
        self.send(method, &tenant, request).await
    }

    /// Whom the ticket stands for; nobody in particular for signed and open calls.
    fn principal(&self, ticket: Ticket, headers: &HeaderMap) -> Result<Option<&Principal>, Error> {
        if ticket != Ticket::ApiKey {
            return Ok(None);
        }
        let shown = bearer(headers).ok_or_else(|| {
            unauthenticated(Reason::CredentialsMissing, "the call carries no API key")
        })?;
        let principal = self.keys.find(shown);
        let unknown = || unauthenticated(Reason::CredentialsInvalid, "the API key is not known");
        principal.map(Some).ok_or_else(unknown)
    }

    async fn send(
        &self,
        method: &Method,
        tenant: &str,
        request: Request<Body>,
    ) -> Result<Response<Body>, Status> {
        if method.path == WORKERS_STREAM
            && let Some(holder) = self.admitting.peer_for(tenant).await
        {
            return holder.oneshot(request).await;
        }
        match self.peers.get(&door::target(method)) {
            Some(peer) => peer.clone().oneshot(request).await,
            None => self
                .access
                .clone()
                .oneshot(request)
                .await
                .map_err(|never| match never {}),
        }
    }
}

/// Reads what the first message says about tenant and workspace; the request stays as it was.
async fn read_scope(
    request: Request<Body>,
    method: &Method,
) -> Result<(Request<Body>, Option<Scope>), Status> {
    let kind = scope::kind_of(&method.path).unwrap_or(ScopeKind::Unscoped);
    if kind == ScopeKind::Unscoped {
        return Ok((request, None));
    }
    let (head, body) = request.into_parts();
    let first = FirstMessage::read(body).await?;
    let scope = scope::read(kind, &first.message)
        .map_err(|bad| Error::new(Reason::InvalidField, bad.to_string()))?;
    Ok((Request::from_parts(head, first.body), Some(scope)))
}

/// Says for whom the call is made. Whatever the client said about that itself was taken away at the door.
fn with_caller(
    mut request: Request<Body>,
    principal: Option<&Principal>,
    scope: Option<Scope>,
) -> Result<Request<Body>, Error> {
    let Some(principal) = principal else {
        return Ok(request);
    };
    let scope = scope.unwrap_or_else(|| Scope {
        tenant: principal.tenant.clone(),
        ..Scope::default()
    });
    check_scope(principal, &scope)?;
    let caller = Caller {
        peer: PeerIdentity::Service(Service::Gateway),
        tenant: scope.tenant,
        workspace: scope.workspace,
        principal: principal.id.clone(),
        roles: principal.roles.clone(),
        request_id: Ulid::generate().to_string(),
    };
    caller.write(request.headers_mut())?;
    request.headers_mut().remove(AUTHORIZATION);
    request.extensions_mut().insert(caller);
    Ok(request)
}

/// The answer is the same for what is not open and for what does not exist.
fn check_scope(principal: &Principal, scope: &Scope) -> Result<(), Error> {
    let closed = |reason, what: &str, name: &str| {
        Err(Error::new(
            reason,
            format!("{what} `{name}` does not exist or is not open to this API key"),
        ))
    };
    if scope.tenant != principal.tenant {
        return closed(Reason::TenantMismatch, "tenant", &scope.tenant);
    }
    if !scope.workspace.is_empty() && !principal.may_enter(&scope.workspace) {
        return closed(Reason::WorkspaceMismatch, "workspace", &scope.workspace);
    }
    Ok(())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers
        .get(AUTHORIZATION)?
        .to_str()
        .ok()?
        .strip_prefix("Bearer ")
}

fn unauthenticated(reason: Reason, why: &str) -> Error {
    Error::new(
        reason,
        format!("{why}: send `authorization: Bearer <API key>`"),
    )
}

fn refusal(shut: Shut, path: &str) -> Error {
    match shut {
        Shut::Unknown => Error::new(
            Reason::NotImplemented,
            format!("{path} is no method of servo.v1"),
        ),
        Shut::Internal => Error::new(
            Reason::CallerNotAllowed,
            format!("{path} may be called by services of the mesh only"),
        ),
    }
}
