//! On whose behalf a call is made. The gateway says it in metadata, and only the gateway is believed.

use http::{HeaderMap, HeaderValue};
use servo_model::Service;
use servo_proto::Scoped;
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

/// The caller of a request, as an extension of it: `Caller::of(request.extensions())`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who holds the other end of the connection.
    pub peer: PeerIdentity,
    pub tenant: String,
    /// Empty when the principal is not confined to one workspace.
    pub workspace: String,
    /// Empty, like the tenant, when a service of the mesh acts for itself.
    pub principal: String,
    pub roles: Vec<String>,
    pub request_id: String,
}

impl Caller {
    /// The caller that the mesh put beside the request.
    pub fn of(extensions: &Extensions) -> Result<&Caller, Error> {
        let absent = || {
            Error::new(
                Reason::Internal,
                "the call did not come through the exposure of the mesh",
            )
        };
        extensions.get::<Caller>().ok_or_else(absent)
    }

    /// Checks that the request is about the caller's own tenant and workspace. The gate has already done so
    /// for every message on the wire; this is for what a handler builds itself. A service of the mesh that
    /// acts for itself was admitted by the method's list of callers and speaks about any tenant. The answer
    /// does not tell whether the other tenant exists.
    pub fn admit(&self, request: &impl Scoped) -> Result<(), Error> {
        self.admit_to(request.tenant(), request.workspace())
    }

    pub(crate) fn admit_to(&self, tenant: &str, workspace: &str) -> Result<(), Error> {
        if self.acts_for_the_mesh() {
            return Ok(());
        }
        if self.tenant.is_empty() || tenant != self.tenant {
            return Err(closed(Reason::TenantMismatch, "tenant", tenant));
        }
        // A tenant-level request has no workspace; whether the principal may make it is its permission's matter.
        if self.workspace.is_empty() || workspace.is_empty() || workspace == self.workspace {
            return Ok(());
        }
        Err(closed(Reason::WorkspaceMismatch, "workspace", workspace))
    }

    /// Writes the metadata that the gateway sends along.
    pub fn apply(&self, metadata: &mut MetadataMap) -> Result<(), Error> {
        let mut headers = std::mem::take(metadata).into_headers();
        let written = self.write(&mut headers);
        *metadata = MetadataMap::from_headers(headers);
        written
    }

    /// [`Caller::apply`] for a request that is passed through as it came.
    pub fn write(&self, headers: &mut HeaderMap) -> Result<(), Error> {
        strip(headers);
        let roles = self.roles.join(",");
        let values = [
            &self.tenant,
            &self.workspace,
            &self.principal,
            &roles,
            &self.request_id,
        ];
        for (name, value) in CALLER_HEADERS.into_iter().zip(values) {
            let written = HeaderValue::from_str(value).map_err(|_| {
                Error::new(
                    Reason::InvalidField,
                    format!("{name}: only visible ASCII characters can be sent"),
                )
            })?;
            headers.insert(name, written);
        }
        Ok(())
    }

    /// Only the mesh makes callers without a principal, and only for services.
    pub(crate) fn acts_for_the_mesh(&self) -> bool {
        matches!(self.peer, PeerIdentity::Service(_)) && self.principal.is_empty()
    }

    /// A peer that speaks for itself: a service, or a worker of its tenant.
    pub(crate) fn for_itself(peer: &PeerIdentity) -> Caller {
        let (tenant, principal) = match peer {
            PeerIdentity::Worker { tenant } => (tenant.clone(), peer.to_string()),
            _ => (String::new(), String::new()),
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

    /// What the gateway says about its client. Without a principal it says nothing.
    pub(crate) fn from_gateway(headers: &HeaderMap) -> Option<Caller> {
        let text = |name| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned()
        };
        let roles = text(ROLES);
        let caller = Caller {
            peer: PeerIdentity::Service(Service::Gateway),
            tenant: text(TENANT),
            workspace: text(WORKSPACE),
            principal: text(PRINCIPAL),
            roles: roles
                .split(',')
                .filter(|role| !role.is_empty())
                .map(str::to_owned)
                .collect(),
            request_id: text(REQUEST_ID),
        };
        (!caller.principal.is_empty()).then_some(caller)
    }
}

/// Takes away what nobody but the gateway may say.
pub(crate) fn strip(headers: &mut HeaderMap) {
    for name in CALLER_HEADERS {
        headers.remove(name);
    }
}

fn closed(reason: Reason, what: &str, name: &str) -> Error {
    Error::new(
        reason,
        format!("{what} `{name}` does not exist or is not open to this caller"),
    )
}
