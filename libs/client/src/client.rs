//! The connection settings, the credentials, and the generated clients.

use std::time::Duration;

use http::HeaderValue;
use servo_proto::v1::access_service_client::AccessServiceClient;
use servo_proto::v1::automation_service_client::AutomationServiceClient;
use servo_proto::v1::backfill_service_client::BackfillServiceClient;
use servo_proto::v1::callback_service_client::CallbackServiceClient;
use servo_proto::v1::dispatcher_service_client::DispatcherServiceClient;
use servo_proto::v1::planner_service_client::PlannerServiceClient;
use servo_proto::v1::quota_service_client::QuotaServiceClient;
use servo_proto::v1::scheduler_service_client::SchedulerServiceClient;
use servo_proto::v1::system_service_client::SystemServiceClient;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::connection::{Authorization, Connection};
use crate::error::Error;
use crate::token::TokenSource;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The certificate authority to trust. All certificates and keys are PEM.
#[derive(Debug, Clone)]
pub struct Tls {
    ca: String,
    server_name: Option<String>,
}

impl Tls {
    /// Accepts servers with a certificate of this authority.
    pub fn new(ca: impl Into<String>) -> Tls {
        Tls {
            ca: ca.into(),
            server_name: None,
        }
    }

    /// The name in the server's certificate, if it differs from the host of the address.
    #[must_use]
    pub fn server_name(self, name: impl Into<String>) -> Tls {
        Tls {
            server_name: Some(name.into()),
            ..self
        }
    }
}

/// The identity of the caller.
#[derive(Clone)]
pub enum Credentials {
    /// An API key, for the gateway.
    ApiKey(String),
    /// A token of an identity provider, for the gateway; obtained for every call.
    Token(TokenSource),
    /// A worker's own certificate, `spiffe://servo/worker/<tenant>`, for direct calls to services.
    Certificate { certificate: String, key: String },
}

/// Never shows a secret.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Credentials::ApiKey(_) => "ApiKey(…)",
            Credentials::Token(_) => "Token(…)",
            Credentials::Certificate { .. } => "Certificate(…)",
        })
    }
}

/// A connection to a server. Cheap to clone; all clones share one connection.
#[derive(Debug, Clone)]
pub struct Client {
    address: String,
    tls: Tls,
    credentials: Credentials,
    connection: Connection,
}

impl Client {
    /// Validates the settings; the first call opens the connection.
    pub fn connect(address: &str, tls: &Tls, credentials: Credentials) -> Result<Client, Error> {
        let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.ca));
        if let Some(name) = &tls.server_name {
            config = config.domain_name(name);
        }
        let mut authorization = Authorization::None;
        match &credentials {
            Credentials::ApiKey(key) => authorization = Authorization::Fixed(bearer(key)?),
            Credentials::Token(source) => authorization = Authorization::Fresh(source.clone()),
            Credentials::Certificate { certificate, key } => {
                config = config.identity(Identity::from_pem(certificate, key));
            }
        }
        let wrong = |error: tonic::transport::Error| Error::config("address", address, &error);
        let endpoint = Endpoint::from_shared(address.to_owned()).map_err(wrong)?;
        let endpoint = endpoint
            .tls_config(config)
            .map_err(|error| Error::config("tls", address, &error))?;
        let channel = endpoint
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEP_ALIVE_EVERY)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true)
            .connect_lazy();
        let connection = Connection::new(channel, authorization);
        Ok(Client {
            address: address.to_owned(),
            tls: tls.clone(),
            credentials,
            connection,
        })
    }

    /// A client with the same settings and credentials at another address.
    pub fn at(&self, address: &str) -> Result<Client, Error> {
        if address == self.address {
            return Ok(self.clone());
        }
        Client::connect(address, &self.tls, self.credentials.clone())
    }

    pub fn planner(&self) -> PlannerServiceClient<Connection> {
        PlannerServiceClient::new(self.connection.clone())
    }

    pub fn scheduler(&self) -> SchedulerServiceClient<Connection> {
        SchedulerServiceClient::new(self.connection.clone())
    }

    pub fn system(&self) -> SystemServiceClient<Connection> {
        SystemServiceClient::new(self.connection.clone())
    }

    pub fn dispatcher(&self) -> DispatcherServiceClient<Connection> {
        DispatcherServiceClient::new(self.connection.clone())
    }

    pub fn callback(&self) -> CallbackServiceClient<Connection> {
        CallbackServiceClient::new(self.connection.clone())
    }

    pub fn backfill(&self) -> BackfillServiceClient<Connection> {
        BackfillServiceClient::new(self.connection.clone())
    }

    pub fn automation(&self) -> AutomationServiceClient<Connection> {
        AutomationServiceClient::new(self.connection.clone())
    }

    pub fn quota(&self) -> QuotaServiceClient<Connection> {
        QuotaServiceClient::new(self.connection.clone())
    }

    pub fn access(&self) -> AccessServiceClient<Connection> {
        AccessServiceClient::new(self.connection.clone())
    }
}

fn bearer(key: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| {
        Error::Config("the API key may contain only visible ASCII characters".to_owned())
    })?;
    value.set_sensitive(true);
    Ok(value)
}
