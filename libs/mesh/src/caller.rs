//! The caller of a request: the verified peer and, when the gateway forwards a call, the user
//! behind it. Caller metadata is trusted only when the gateway sent it.

use http::{HeaderMap, HeaderValue};
use servo_model::{Service, TenantScope};
use tonic::Extensions;
use tonic::metadata::MetadataMap;

use crate::error::{Error, Reason};
use crate::tls::PeerIdentity;

const TENANT: &str = "servo-tenant";
const WORKSPACE: &str = "servo-workspace";
const PRINCIPAL: &str = "servo-principal";
const ROLES: &str = "servo-roles";
const REQUEST_ID: &str = "servo-request-id";
const CALLER_HEADERS: [&str; 5] = [TENANT, WORKSPACE, PRINCIPAL, ROLES, REQUEST_ID];

/// The caller of a request. The mesh stores it in the request's extensions:
/// `Caller::of(request.extensions())`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The identity proven by the certificate of the connection.
    pub peer: PeerIdentity,
    /// `None` when a service calls on its own behalf.
    pub tenant: Option<TenantScope>,
    /// Empty when the principal is not confined to one workspace.
    pub workspace: String,
    /// Empty when a service calls on its own behalf.
    pub principal: String,
    pub roles: Vec<String>,
    pub request_id: String,
}

impl Caller {
    /// Returns the caller that the mesh stored in the request's extensions.
    pub fn of(extensions: &Extensions) -> Result<&Caller, Error> {
        let missing = || {
            Error::new(
                Reason::Internal,
                "the request has no caller, because it did not pass through the mesh's server",
            )
        };
        extensions.get::<Caller>().ok_or_else(missing)
    }

    /// Checks that a message concerns the caller's own tenant and workspace. A service that calls on
    /// its own behalf may access any tenant, because the method's list of callers admitted it. The
    /// error does not reveal whether the other tenant exists.
    pub(crate) fn check_scope(&self, tenant: &str, workspace: &str) -> Result<(), Error> {
        if self.is_mesh_service() {
            return Ok(());
        }
        if self.tenant.as_ref().map(TenantScope::as_str) != Some(tenant) {
            return Err(denied(Reason::TenantMismatch, "tenant", tenant));
        }
        // A tenant-level request has no workspace; the method's permission decides whether the
        // principal may make it.
        if self.workspace.is_empty() || workspace.is_empty() || workspace == self.workspace {
            return Ok(());
        }
        Err(denied(Reason::WorkspaceMismatch, "workspace", workspace))
    }

    /// Writes the caller metadata that the gateway sends with a forwarded call.
    pub fn apply(&self, metadata: &mut MetadataMap) -> Result<(), Error> {
        let mut headers = std::mem::take(metadata).into_headers();
        let written = self.write(&mut headers);
        *metadata = MetadataMap::from_headers(headers);
        written
    }

    /// Like [`Caller::apply`], for a request that is forwarded unchanged.
    pub fn write(&self, headers: &mut HeaderMap) -> Result<(), Error> {
        strip(headers);
        let roles = self.roles.join(",");
        let values = [
            self.tenant_text(),
            &self.workspace,
            &self.principal,
            &roles,
            &self.request_id,
        ];
        for (name, value) in CALLER_HEADERS.into_iter().zip(values) {
            let header = HeaderValue::from_str(value).map_err(|_| {
                Error::new(
                    Reason::InvalidField,
                    format!("{name}: only visible ASCII characters can be sent"),
                )
            })?;
            headers.insert(name, header);
        }
        Ok(())
    }

    /// Empty without a tenant.
    pub(crate) fn tenant_text(&self) -> &str {
        self.tenant.as_ref().map_or("", TenantScope::as_str)
    }

    /// Only the mesh creates callers without a principal, and only for services.
    pub(crate) fn is_mesh_service(&self) -> bool {
        matches!(self.peer, PeerIdentity::Service(_)) && self.principal.is_empty()
    }

    /// The caller of a service or worker that calls on its own behalf.
    pub(crate) fn on_own_behalf(peer: &PeerIdentity) -> Caller {
        let (tenant, principal) = match peer {
            PeerIdentity::Worker { tenant } => (Some(tenant.clone()), peer.to_string()),
            _ => (None, String::new()),
        };
        Caller {
            peer: peer.clone(),
            tenant,
            workspace: String::new(),
            principal,
            roles: Vec::new(),
            request_id: String::new(),
        }
    }

    /// Reads the caller metadata of a call that the gateway forwards. `None` when it has no
    /// principal.
    pub(crate) fn from_gateway(headers: &HeaderMap) -> Option<Caller> {
        let header = |name| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned()
        };
        let roles = header(ROLES);
        let caller = Caller {
            peer: PeerIdentity::Service(Service::Gateway),
            tenant: header(TENANT).parse().ok(),
            workspace: header(WORKSPACE),
            principal: header(PRINCIPAL),
            roles: roles
                .split(',')
                .filter(|role| !role.is_empty())
                .map(str::to_owned)
                .collect(),
            request_id: header(REQUEST_ID),
        };
        (!caller.principal.is_empty()).then_some(caller)
    }
}

/// Removes the metadata that only the gateway may set.
pub(crate) fn strip(headers: &mut HeaderMap) {
    for name in CALLER_HEADERS {
        headers.remove(name);
    }
}

fn denied(reason: Reason, what: &str, name: &str) -> Error {
    Error::new(
        reason,
        format!("{what} `{name}` does not exist or is not open to this caller"),
    )
}
