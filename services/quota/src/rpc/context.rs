//! What the handlers share: the store, the defaults, page tokens, and how errors travel.

use jiff::Timestamp;
use secrecy::ExposeSecret;
use servo_mesh::{Doorbell, Error, Mesh, PageTokens, Peer, Reason};
use servo_model::ids::IdError;
use servo_model::{Service, TenantId};
use servo_proto::v1::QuotaLimits;
use servo_proto::v1::dispatcher_service_client::DispatcherServiceClient;
use servo_proto::v1::scheduler_service_client::SchedulerServiceClient;
use servo_store::{AppendError, Store, StoreError, TenantTx};
use tracing::error;

use crate::Config;
use crate::core::limits;
use crate::core::picture::PLATFORM;
use crate::core::text::BadField;
use crate::loops::limits::Board;
use crate::store::quotas;

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Quota {
    pub(crate) store: Store,
    pub(crate) pages: PageTokens,
    /// What the configuration says for all who set nothing.
    pub(crate) defaults: QuotaLimits,
    /// Rings when a setting changed here.
    pub(crate) bell: Doorbell,
    pub(crate) board: Board,
    /// Those who enforce limits know what is used of them.
    pub(crate) dispatcher: DispatcherServiceClient<Peer>,
    pub(crate) scheduler: SchedulerServiceClient<Peer>,
}

impl Quota {
    pub(crate) fn new(store: &Store, mesh: &Mesh<Config>, defaults: QuotaLimits) -> Quota {
        let password = &mesh.config().database.password;
        Quota {
            store: store.clone(),
            // What all instances share, and nobody else knows.
            pages: PageTokens::new(password.expose_secret().as_bytes()),
            defaults,
            bell: Doorbell::new(),
            board: Board::new(None),
            dispatcher: DispatcherServiceClient::new(mesh.peer(Service::Dispatcher)),
            scheduler: SchedulerServiceClient::new(mesh.peer(Service::Scheduler)),
        }
    }

    /// A setting changed and those who follow limits want to know.
    pub(crate) fn changed(&self) {
        self.bell.ring();
    }

    pub(crate) async fn begin(&self, tenant: &str) -> Result<TenantTx, Error> {
        self.store.requests().begin(tenant).await.map_err(stored)
    }

    /// What holds where the tenant set nothing. Its own transaction, since a tenant's sees no rows of the platform.
    pub(crate) async fn below(&self, tenant: &str) -> Result<QuotaLimits, Error> {
        if tenant == PLATFORM {
            return Ok(self.defaults);
        }
        let mut tx = self.begin(PLATFORM).await?;
        let (_, platform) = quotas::find(&mut tx, PLATFORM).await.map_err(stored)?;
        Ok(limits::over(&platform, &self.defaults))
    }
}

/// A tenant, or the platform.
pub(crate) fn tenant_or_platform(text: &str) -> Result<String, Error> {
    if text == PLATFORM {
        return Ok(text.to_owned());
    }
    tenant(text)
}

pub(crate) fn tenant(text: &str) -> Result<String, Error> {
    let parsed: Result<TenantId, IdError> = text.parse();
    parsed
        .map(|tenant| tenant.to_string())
        .map_err(|error| Error::bad_field("tenant", error.to_string()))
}

pub(crate) fn millis() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0)
}

pub(crate) fn bad(field: BadField) -> Error {
    Error::bad_field(field.field, field.sentence)
}

pub(crate) fn stored(failure: StoreError) -> Error {
    if failure.is_transient() {
        return Error::new(Reason::DependencyUnavailable, failure.to_string());
    }
    error!(%failure, "a statement failed");
    Error::new(
        Reason::Internal,
        "the quota service could not read or write its rows",
    )
}

pub(crate) fn appended(failure: AppendError) -> Error {
    match failure {
        AppendError::Store(failure) => stored(failure),
        AppendError::BadEvent(_) | AppendError::TooManyEvents(_) => {
            error!(%failure, "an event was refused");
            Error::new(
                Reason::Internal,
                "the quota service made an event that the ledger refuses",
            )
        }
    }
}
