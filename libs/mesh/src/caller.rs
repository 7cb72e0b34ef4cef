//! The caller of a request: the verified peer and, when the gateway forwards a call, the user
//! behind it with the permissions that it holds. Caller metadata is trusted only when the gateway
//! sent it.

use http::{HeaderMap, HeaderValue};
use servo_model::ids::IdError;
use servo_model::{Grants, Permission, Role, Service, TenantScope, WorkspaceId, WorkspaceScope};
use servo_proto::access::{Access, Method};
use servo_proto::scope::{Scope, ScopeKind};
use tonic::Extensions;
use tonic::metadata::MetadataMap;

use crate::error::{Error, Reason};
use crate::tls::PeerIdentity;

const TENANT: &str = "servo-tenant";
const WORKSPACES: &str = "servo-workspaces";
const PRINCIPAL: &str = "servo-principal";
const GRANTS: &str = "servo-grants";
const REQUEST_ID: &str = "servo-request-id";
const CALLER_HEADERS: [&str; 5] = [TENANT, WORKSPACES, PRINCIPAL, GRANTS, REQUEST_ID];

/// The caller of a request. The mesh stores it in the request's extensions:
/// `Caller::of(request.extensions())`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The identity proven by the certificate of the connection.
    pub peer: PeerIdentity,
    /// Where the grants hold: a tenant, or `All` when the platform operator names all tenants.
    /// `None` when a service calls on its own behalf, or the call names no tenant.
    pub tenant: Option<TenantScope>,
    /// The workspaces of the tenant in which the grants hold.
    pub workspaces: WorkspaceScope,
    /// Empty when a service calls on its own behalf.
    pub principal: String,
    /// The permissions that the principal holds in this tenant and these workspaces.
    pub grants: Grants,
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

    /// Checks that the caller holds the permission that a method requires. The gateway and every
    /// service decide by this function. It does not know whether the method is implemented or the
    /// object exists, so a refusal reveals neither.
    pub fn check_permission(&self, method: &Method) -> Result<(), Error> {
        match &method.access {
            Access::Permission(required) if !self.grants.contains(*required) => {
                Err(self.not_granted(method, *required))
            }
            _ => Ok(()),
        }
    }

    fn not_granted(&self, method: &Method, required: Permission) -> Error {
        let holders: Vec<&str> = required.roles().iter().map(|role| role.name()).collect();
        let holders = match holders.as_slice() {
            [] => "only the platform operator holds it".to_owned(),
            roles => format!("roles that hold it: {}", roles.join(", ")),
        };
        let message = format!(
            "{} requires the permission `{required}`, which `{}` does not hold; {holders}",
            method.name, self.principal
        );
        Error::new(Reason::PermissionDenied, message)
            .with("method", &method.path)
            .with("permission", required.name())
    }

    /// Checks that a message concerns a tenant and workspaces where the caller's grants hold. A
    /// service that calls on its own behalf may access any tenant, because the method's list of
    /// callers admitted it. The error does not reveal whether the other tenant exists.
    pub fn check_scope(
        &self,
        method: &Method,
        kind: ScopeKind,
        scope: &Scope,
    ) -> Result<(), Error> {
        check_scope_names(kind, scope)?;
        if kind == ScopeKind::Unscoped || self.is_mesh_service() {
            return Ok(());
        }
        if self.tenant_text() != scope.tenant {
            return Err(denied(Reason::TenantMismatch, "tenant", &scope.tenant));
        }
        match kind {
            ScopeKind::Workspace if self.workspaces.contains(&scope.workspace) => Ok(()),
            ScopeKind::Workspace => Err(denied(
                Reason::WorkspaceMismatch,
                "workspace",
                &scope.workspace,
            )),
            _ if method.confined || self.workspaces == WorkspaceScope::All => Ok(()),
            _ => Err(self.confined(method)),
        }
    }

    fn confined(&self, method: &Method) -> Error {
        let message = format!(
            "{} concerns all workspaces of the tenant; `{}` may act in {} only",
            method.name,
            self.principal,
            self.workspace_names()
        );
        Error::new(Reason::WorkspaceMismatch, message).with("method", &method.path)
    }

    /// Checks a workspace that a tenant-level request names, for the methods that confined
    /// principals may call. Empty stands for all workspaces.
    pub fn check_workspace(&self, field: &str, workspace: &str) -> Result<(), Error> {
        if self.workspaces == WorkspaceScope::All || self.workspaces.contains(workspace) {
            return Ok(());
        }
        let message = match workspace {
            "" => format!(
                "{field}: names no workspace, which stands for all; `{}` may act in {} only",
                self.principal,
                self.workspace_names()
            ),
            name => format!(
                "{field}: workspace `{name}` does not exist or is not open to this caller, which may act in {} only",
                self.workspace_names()
            ),
        };
        Err(Error::new(Reason::WorkspaceMismatch, message))
    }

    fn workspace_names(&self) -> String {
        match &self.workspaces {
            WorkspaceScope::All => "all workspaces".to_owned(),
            WorkspaceScope::Only(names) => {
                let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                quoted.join(", ")
            }
        }
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
        let (workspaces, grants) = (self.workspaces.to_string(), self.grants.to_string());
        let values = [
            self.tenant_text(),
            &workspaces,
            &self.principal,
            &grants,
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

    /// The caller of a service or worker that calls on its own behalf. Services hold no
    /// permissions: the methods that they call name them as callers.
    pub(crate) fn on_own_behalf(peer: &PeerIdentity) -> Caller {
        let (tenant, principal, grants) = match peer {
            PeerIdentity::Worker { tenant } => (
                Some(tenant.clone()),
                peer.to_string(),
                Grants::of_role(Role::Worker),
            ),
            _ => (None, String::new(), Grants::default()),
        };
        Caller {
            peer: peer.clone(),
            tenant,
            workspaces: WorkspaceScope::All,
            principal,
            grants,
            request_id: String::new(),
        }
    }

    /// Reads the caller metadata of a call that the gateway forwards. `None` when it has no
    /// principal. Metadata that is missing or malformed grants nothing.
    pub(crate) fn from_gateway(headers: &HeaderMap) -> Option<Caller> {
        let header = |name| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
        };
        let workspaces = header(WORKSPACES).parse();
        let caller = Caller {
            peer: PeerIdentity::Service(Service::Gateway),
            tenant: header(TENANT).parse().ok(),
            workspaces: workspaces.unwrap_or(WorkspaceScope::Only(Default::default())),
            principal: header(PRINCIPAL).to_owned(),
            grants: header(GRANTS).parse().unwrap_or_default(),
            request_id: header(REQUEST_ID).to_owned(),
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

/// Checks the names of a request's scope. Nothing else may use them before, because they are copied
/// into headers, logs and statements.
pub fn check_scope_names(kind: ScopeKind, scope: &Scope) -> Result<(), Error> {
    let invalid = |field: &str, error: IdError| Error::bad_field(field, error.to_string());
    if kind != ScopeKind::Unscoped {
        let tenant = scope.tenant.parse::<TenantScope>();
        tenant.map_err(|error| invalid("tenant", error))?;
    }
    if kind == ScopeKind::Workspace {
        let workspace = scope.workspace.parse::<WorkspaceId>();
        workspace.map_err(|error| invalid("workspace", error))?;
    }
    Ok(())
}

fn denied(reason: Reason, what: &str, name: &str) -> Error {
    Error::new(
        reason,
        format!("{what} `{name}` does not exist or is not open to this caller"),
    )
}
