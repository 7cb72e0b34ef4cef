//! Forwarding a call: checks its credential and scope, adds the caller metadata and sends it to its
//! service.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response};
use servo_mesh::{
    Caller, Error, FirstMessage, Handler, Mesh, Peer, PeerIdentity, Reason, check_scope_names,
};
use servo_model::{Service, Stream, TenantId, TenantScope};
use servo_proto::access::{self, Method};
use servo_proto::scope::{self, Scope, ScopeKind};
use servo_proto::v1::access_service_server::AccessServiceServer;
use servo_service::ShardHolders;
use servo_store::Store;
use tonic::Status;
use tonic::body::Body;
use tower::util::BoxCloneSyncService;
use tower::{ServiceExt, service_fn};
use ulid::Ulid;

use crate::Config;
use crate::core::access::{Credential, Denied, required_credential, target};
use crate::core::api_keys::{ApiKeys, Principal};
use crate::rpc::Access;

/// A worker's stream, which is forwarded to the dispatcher that admits the tenant's tasks, because
/// other instances would refuse it and a worker outside the mesh cannot reach the holder itself.
const PULL_TASKS: &str = "/servo.v1.DispatcherService/PullTasks";
/// Minimum time between two reads of the dispatchers' lease rows. Leases move rarely, so one read
/// serves all callers.
const REFRESH_INTERVAL_MIN: Duration = Duration::from_millis(500);

/// Forwards public calls.
#[derive(Clone)]
pub(crate) struct Proxy {
    keys: Arc<ApiKeys>,
    peers: Arc<HashMap<Service, Peer>>,
    dispatchers: ShardHolders,
    access: AccessServiceServer<Access>,
}

impl Proxy {
    pub(crate) fn new(
        mesh: &Mesh<Config>,
        store: &Store,
        keys: Arc<ApiKeys>,
        access: AccessServiceServer<Access>,
    ) -> Proxy {
        let peers = Service::ALL
            .into_iter()
            .filter(|service| *service != Service::Gateway);
        let peers = peers.map(|service| (service, mesh.peer(service))).collect();
        let dispatchers =
            ShardHolders::new(mesh, store.loops(), Service::Dispatcher, Stream::Dispatch);
        Proxy {
            keys,
            peers: Arc::new(peers),
            dispatchers,
            access,
        }
    }

    pub(crate) fn into_handler(self) -> Handler {
        BoxCloneSyncService::new(service_fn(move |request| {
            let proxy = self.clone();
            async move {
                let response = proxy.answer(request).await;
                Ok::<_, Infallible>(response.unwrap_or_else(|status| status.into_http()))
            }
        }))
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, Status> {
        let path = request.uri().path().to_owned();
        let method = access::method_of(&path);
        let credential = required_credential(method).map_err(|denied| denial(denied, &path))?;
        let principal = self.principal(credential, request.headers())?;
        let method = method.ok_or_else(|| denial(Denied::Unknown, &path))?;
        let (request, kind, scope) = read_scope(request, method).await?;
        check_scope_names(kind, &scope)?;
        let Some(principal) = principal else {
            return self.send(method, None, request).await;
        };
        let caller = caller(principal, kind, &scope);
        caller.check_scope(method, kind, &scope)?;
        caller.check_permission(method)?;
        let mut request = with_caller(request, &caller)?;
        request.extensions_mut().insert(principal.clone());
        let tenant = caller.tenant.as_ref().and_then(TenantScope::tenant);
        self.send(method, tenant, request).await
    }

    /// Returns the principal of the API key; `None` for signed and open calls.
    fn principal(
        &self,
        credential: Credential,
        headers: &HeaderMap,
    ) -> Result<Option<&Arc<Principal>>, Error> {
        if credential != Credential::ApiKey {
            return Ok(None);
        }
        let key = bearer(headers).ok_or_else(|| {
            unauthenticated(Reason::CredentialsMissing, "the call has no API key")
        })?;
        let principal = self.keys.find(key);
        let unknown = || unauthenticated(Reason::CredentialsInvalid, "the API key is unknown");
        principal.map(Some).ok_or_else(unknown)
    }

    async fn send(
        &self,
        method: &Method,
        tenant: Option<&TenantId>,
        request: Request<Body>,
    ) -> Result<Response<Body>, Status> {
        if method.path == PULL_TASKS
            && let Some(tenant) = tenant
            && let Some(holder) = self.dispatcher_of(tenant).await
        {
            return holder.oneshot(request).await;
        }
        match self.peers.get(&target(method)) {
            Some(peer) => peer.clone().oneshot(request).await,
            None => self
                .access
                .clone()
                .oneshot(request)
                .await
                .map_err(|never| match never {}),
        }
    }

    /// Returns `None` while the tenant's admission shard has no known holder.
    async fn dispatcher_of(&self, tenant: &TenantId) -> Option<Peer> {
        self.dispatchers
            .fresh_or_last_known(REFRESH_INTERVAL_MIN)
            .await;
        let holder = self.dispatchers.of(tenant.admission_shard().into());
        holder.map(|instance| instance.peer)
    }
}

/// Reads tenant and workspace from the first message. The request is not changed.
async fn read_scope(
    request: Request<Body>,
    method: &Method,
) -> Result<(Request<Body>, ScopeKind, Scope), Status> {
    let kind = scope::kind_of(&method.path).unwrap_or(ScopeKind::Unscoped);
    if kind == ScopeKind::Unscoped {
        return Ok((request, kind, Scope::default()));
    }
    let (head, body) = request.into_parts();
    let first = FirstMessage::read(body).await?;
    let scope = scope::read(kind, &first.message)
        .map_err(|error| Error::new(Reason::InvalidField, error.to_string()))?;
    Ok((Request::from_parts(head, first.body), kind, scope))
}

/// The caller that the service behind the gateway sees: the principal with the grants that it holds
/// where the call acts. A call about one workspace carries that workspace alone.
fn caller(principal: &Principal, kind: ScopeKind, scope: &Scope) -> Caller {
    let named: Option<TenantScope> = scope.tenant.parse().ok();
    let grants = principal.grants(named.as_ref());
    let mut workspaces = principal.workspaces();
    if kind == ScopeKind::Workspace && workspaces.contains(&scope.workspace) {
        workspaces = scope.workspace.parse().unwrap_or(workspaces);
    }
    Caller {
        peer: PeerIdentity::Service(Service::Gateway),
        tenant: principal.tenant(named),
        workspaces,
        principal: principal.id.clone(),
        grants,
        // An id of this call for logs, not the request id in the message.
        request_id: Ulid::generate().to_string(),
    }
}

/// Adds the metadata that says for whom the call is made. The server has removed any such metadata
/// of the client. A presigned or open call has no principal and gets none.
fn with_caller(mut request: Request<Body>, caller: &Caller) -> Result<Request<Body>, Error> {
    caller.write(request.headers_mut())?;
    request.headers_mut().remove(AUTHORIZATION);
    request.extensions_mut().insert(caller.clone());
    Ok(request)
}

/// The secret of the header `authorization: Bearer <API key>`. The scheme's name is matched in any
/// case, as RFC 9110 demands.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, secret) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

fn unauthenticated(reason: Reason, message: &str) -> Error {
    Error::new(
        reason,
        format!("{message}; send `authorization: Bearer <API key>`"),
    )
}

fn denial(denied: Denied, path: &str) -> Error {
    match denied {
        Denied::Unknown => Error::new(
            Reason::NotImplemented,
            format!("{path} is not a method of servo.v1"),
        ),
        Denied::Internal => Error::new(
            Reason::CallerNotAllowed,
            format!("{path} may be called by services of the mesh only"),
        ),
    }
}
