//! What the handlers share: the store, graphs in memory, page tokens, and how errors travel.

use std::sync::Arc;

use jiff::Timestamp;
use secrecy::ExposeSecret;
use servo_mesh::{Caller, Error, PageTokens, Reason};
use servo_model::ids::IdError;
use servo_model::partitioning::Moment;
use servo_model::{
    DeploymentId, Digest, EventId, EventType, PerTenant, Stream, TenantId, WorkspaceId,
};
use servo_proto::Scoped;
use servo_proto::v1::{self, Actor};
use servo_store::{AppendError, NewEvent, Store, StoreError, TenantTx};
use tokio::sync::watch;
use tracing::error;
use uuid::Uuid;

use crate::Config;
use crate::artifacts::ArtifactDir;
use crate::core::deployed::Deployed;
use crate::core::refusal::Refusal;
use crate::graphs::Graphs;
use crate::store::{Scope, deployments, sets};

/// The id that means what is deployed now.
const CURRENT: &str = "current";
const REQUEST_ID_BYTES_MAX: usize = 128;

/// Tasks that a run may have; `None` is no cap of the tenant's own.
pub(crate) type Limits = PerTenant<Option<u32>>;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Planner {
    pub(crate) store: Store,
    pub(crate) graphs: Arc<Graphs>,
    pub(crate) pages: PageTokens,
    artifacts: Option<ArtifactDir>,
    limits: watch::Receiver<Limits>,
}

/// A deployment as a reader finds it.
pub(crate) struct Found {
    pub(crate) id: String,
    pub(crate) graph: Arc<Deployed>,
}

impl Planner {
    pub(crate) fn new(store: Store, config: &Config, limits: watch::Receiver<Limits>) -> Planner {
        Planner {
            store,
            graphs: Arc::default(),
            // What all planners of a fleet share, and nobody else knows.
            pages: PageTokens::new(config.database.password.expose_secret().as_bytes()),
            artifacts: config.planner.artifacts.as_deref().map(ArtifactDir::new),
            limits,
        }
    }

    /// Tasks that a run of the tenant may have; no cap while none is known.
    pub(crate) fn max_tasks(&self, tenant: &str) -> Option<u32> {
        let tenant: TenantId = tenant.parse().ok()?;
        **self.limits.borrow().of(&tenant)
    }

    pub(crate) async fn begin(&self, scope: &Scope) -> Result<TenantTx, Error> {
        self.store
            .requests()
            .begin(&scope.tenant)
            .await
            .map_err(stored)
    }

    pub(crate) fn artifacts(&self) -> Result<&ArtifactDir, Error> {
        let sentence = "this planner keeps no artifacts; set planner.artifacts to a directory";
        self.artifacts
            .as_ref()
            .ok_or_else(|| Error::new(Reason::NotImplemented, sentence))
    }

    /// The deployment that a request names; an empty id or "current" is what is deployed now.
    pub(crate) async fn deployment(
        &self,
        tx: &mut TenantTx,
        scope: &Scope,
        id: &str,
    ) -> Result<Found, Error> {
        let row = find_deployment(tx, scope, id).await?;
        let digest = row.digest().map_err(stored)?;
        let graph = self.graph(tx, scope, &digest).await?;
        Ok(Found {
            id: row.message().map_err(stored)?.deployment_id,
            graph,
        })
    }

    pub(crate) async fn graph(
        &self,
        tx: &mut TenantTx,
        scope: &Scope,
        digest: &Digest,
    ) -> Result<Arc<Deployed>, Error> {
        if let Some(graph) = self.graphs.find(digest) {
            return Ok(graph);
        }
        let manifest = deployments::manifest(tx, scope, digest)
            .await
            .map_err(stored)?;
        let graph = working(move || Deployed::from_normal(manifest))
            .await?
            .map_err(unreadable)?;
        Ok(self.graphs.keep(Arc::new(graph)))
    }

    /// What exists just now of the dynamic sets of a deployment.
    pub(crate) async fn moment(
        &self,
        tx: &mut TenantTx,
        scope: &Scope,
        graph: &Deployed,
    ) -> Result<Moment, Error> {
        let sets = sets::values(tx, scope, graph.sets.iter().cloned().collect())
            .await
            .map_err(stored)?;
        Ok(Moment {
            now: Timestamp::now(),
            sets,
        })
    }
}

pub(crate) async fn find_deployment(
    tx: &mut TenantTx,
    scope: &Scope,
    id: &str,
) -> Result<deployments::DeploymentRow, Error> {
    let wanted = deployment_id(id)?;
    let row = deployments::find(tx, scope, wanted.as_ref())
        .await
        .map_err(stored)?;
    row.ok_or_else(|| match wanted {
        Some(id) => Error::new(
            Reason::DeploymentNotFound,
            format!("there is no deployment {id} in this workspace"),
        ),
        None => Error::new(
            Reason::DeploymentNotFound,
            "nothing is deployed in this workspace yet; deploy first",
        ),
    })
}

/// `None` for the current one. A text that is no id names nothing either.
pub(crate) fn deployment_id(text: &str) -> Result<Option<DeploymentId>, Error> {
    if text.is_empty() || text == CURRENT {
        return Ok(None);
    }
    let parsed = text.parse().map(Some);
    parsed.map_err(|error: IdError| Error::new(Reason::DeploymentNotFound, error.to_string()))
}

/// The tenant and workspace that a request speaks about.
pub(crate) fn scope(request: &impl Scoped) -> Result<Scope, Error> {
    scope_of(request.tenant(), request.workspace())
}

pub(crate) fn scope_of(tenant: &str, workspace: &str) -> Result<Scope, Error> {
    let tenant: TenantId = tenant
        .parse()
        .map_err(|error: IdError| Error::bad_field("tenant", error.to_string()))?;
    let workspace: WorkspaceId = workspace
        .parse()
        .map_err(|error: IdError| Error::bad_field("workspace", error.to_string()))?;
    Ok(Scope {
        tenant: tenant.to_string(),
        workspace: workspace.to_string(),
    })
}

/// Runs what computes for long where it does not hold up others.
pub(crate) async fn working<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|failure| {
        error!(%failure, "a computation of the planner ended badly");
        Error::new(Reason::Internal, "the planner hit a fault of its own")
    })
}

pub(crate) fn check_request_id(request_id: &str) -> Result<(), Error> {
    match request_id.len() {
        0 => Err(Error::new(
            Reason::RequestIdRequired,
            "request_id is empty; choose one, so that a repeat is safe",
        )),
        1..=REQUEST_ID_BYTES_MAX if !request_id.contains('\0') => Ok(()),
        length => Err(Error::bad_field(
            "request_id",
            format!(
                "has {length} bytes or a NUL; 1 to {REQUEST_ID_BYTES_MAX} plain ones are allowed"
            ),
        )),
    }
}

pub(crate) fn actor(caller: &Caller, comment: &str) -> Actor {
    let principal = match caller.principal.is_empty() {
        true => caller.peer.to_string(),
        false => caller.principal.clone(),
    };
    Actor {
        principal,
        comment: comment.to_owned(),
    }
}

/// An event of the catalogue.
pub(crate) fn catalog_event(
    scope: &Scope,
    kind: EventType,
    idempotency_key: &str,
    body: v1::event::Body,
) -> NewEvent {
    use prost::Message as _;
    let trace = servo_mesh::current_trace().map(|trace| v1::TraceContext {
        traceparent: trace.to_string(),
        tracestate: String::new(),
    });
    let event = v1::Event {
        version: 1,
        trace,
        body: Some(body),
    };
    NewEvent {
        event_id: Uuid::from_bytes(*new_event_id().as_bytes()),
        kind,
        version: 1,
        shard: catalog_shard(scope),
        tenant: scope.tenant.clone(),
        workspace: scope.workspace.clone(),
        idempotency_key: idempotency_key.to_owned(),
        correlation_id: None,
        causation_id: None,
        payload: event.encode_to_vec(),
    }
}

/// All events of a workspace stand in one order.
fn catalog_shard(scope: &Scope) -> i16 {
    let hash = Digest::of(format!("{}/{}", scope.tenant, scope.workspace));
    i16::from(hash.as_bytes()[0]) % Stream::Catalog.shards()
}

fn new_event_id() -> EventId {
    EventId::new(millis(), rand::random())
}

pub(crate) fn new_deployment_id() -> DeploymentId {
    DeploymentId::new(millis(), rand::random())
}

fn millis() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0)
}

pub(crate) fn event_id(event: &NewEvent) -> String {
    EventId::from_bytes(*event.event_id.as_bytes()).to_string()
}

/// A stored manifest that cannot be read any more is a fault of ours.
pub(crate) fn unreadable(refusal: Refusal) -> Error {
    error!(
        message = refusal.message,
        "a stored manifest cannot be read"
    );
    Error::new(
        Reason::Internal,
        "a stored manifest cannot be read by this version of the planner",
    )
}

pub(crate) fn stored(failure: StoreError) -> Error {
    if failure.is_transient() {
        return Error::new(Reason::DependencyUnavailable, failure.to_string());
    }
    error!(%failure, "a statement failed");
    Error::new(
        Reason::Internal,
        "the planner could not read or write its rows",
    )
}

pub(crate) fn appended(failure: AppendError) -> Error {
    match failure {
        AppendError::Store(failure) => stored(failure),
        AppendError::BadEvent(_) | AppendError::TooManyEvents(_) => {
            error!(%failure, "an event was refused");
            Error::new(
                Reason::Internal,
                "the planner made an event that the ledger refuses",
            )
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        let error = Error::new(refusal.reason, refusal.message);
        refusal
            .violations
            .into_iter()
            .fold(error, |error, (field, sentence)| {
                error.and_bad_field(field, sentence)
            })
    }
}
