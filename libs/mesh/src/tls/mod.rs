//! The service's own certificate and the authorities it trusts, for both ends of every connection.
//!
//! TLS 1.3 only. The three files are checked for changes while the service runs: new connections
//! use the new files, and connections made with the old ones are closed once their calls are done.
//! Files that do not match each other, for example because they are being replaced, are logged and
//! the old ones stay in use.

pub(crate) mod identity;
mod load;
mod verify;

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig, client, sign};
use servo_model::Service;
use tokio::sync::watch;
use tracing::{info, warn};

pub use identity::PeerIdentity;
pub(crate) use verify::WrongIdentity;

use crate::config;
use crate::fault::{ConfigFault, Fault};
use load::{Credentials, Files};

/// The clients that may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposure {
    /// Only clients with a certificate of our authorities.
    Mesh,
    /// Any client; a certificate, if presented, must be of our authorities.
    Public,
}

impl Exposure {
    fn protocols(self) -> Vec<Vec<u8>> {
        match self {
            Exposure::Mesh => vec![b"h2".to_vec()],
            Exposure::Public => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        }
    }
}

/// A cheap handle on the current certificates.
#[derive(Clone)]
pub struct Tls {
    shared: Arc<Shared>,
}

struct Shared {
    service: Service,
    config: config::Tls,
    provider: Arc<CryptoProvider>,
    current: ArcSwap<Credentials>,
    generation: watch::Sender<u64>,
    reloading: Mutex<()>,
}

impl Tls {
    /// Reads the files. Fails with everything that is wrong with them.
    pub fn load(service: Service, config: config::Tls) -> Result<Tls, Vec<ConfigFault>> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let credentials = load::parse(&Files::read(&config)?, &config, service, &provider)?;
        let shared = Shared {
            service,
            config,
            provider,
            current: ArcSwap::from_pointee(credentials),
            generation: watch::Sender::new(0),
            reloading: Mutex::new(()),
        };
        Ok(Tls {
            shared: Arc::new(shared),
        })
    }

    /// Checks the files now. Returns whether new certificates are in use.
    pub fn reload(&self) -> bool {
        // One reload at a time, so that files that were read earlier are never installed later.
        let _guard = self
            .shared
            .reloading
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match self.read_changed() {
            Ok(None) => false,
            Ok(Some(credentials)) => {
                self.shared.current.store(Arc::new(credentials));
                self.shared
                    .generation
                    .send_modify(|generation| *generation += 1);
                info!("new certificates are in use");
                true
            }
            Err(faults) => {
                warn!(fault = %Fault::Config(faults), "new certificates cannot be used, the old ones stay in use");
                false
            }
        }
    }

    /// Checks the files at the configured interval, forever.
    pub(crate) async fn watch_files(self) {
        loop {
            tokio::time::sleep(self.shared.config.reload_every).await;
            self.reload();
        }
    }

    /// Changes whenever new certificates are in use.
    pub(crate) fn generation(&self) -> watch::Receiver<u64> {
        self.shared.generation.subscribe()
    }

    /// The expiry of the certificate in use, in seconds since 1970.
    pub(crate) fn expires_at(&self) -> i64 {
        self.shared.current.load().expires_at
    }

    pub(crate) fn server_config(&self, exposure: Exposure) -> Result<ServerConfig, rustls::Error> {
        let (provider, current) = (&self.shared.provider, self.shared.current.load());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(current.roots.clone(), provider.clone());
        let verifier = match exposure {
            Exposure::Mesh => verifier.build(),
            Exposure::Public => verifier.allow_unauthenticated().build(),
        };
        let verifier = verifier.map_err(|error| rustls::Error::General(error.to_string()))?;
        let mut config = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(sign::SingleCertAndKey::from(current.own.clone())));
        config.alpn_protocols = exposure.protocols();
        // A resumed session would keep an identity after the rotation that revoked it.
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    pub(crate) fn client_config(&self, expected: Service) -> Result<ClientConfig, rustls::Error> {
        let (provider, current) = (&self.shared.provider, self.shared.current.load());
        let verifier = verify::ExpectService {
            service: expected,
            roots: current.roots.clone(),
            algorithms: provider.signature_verification_algorithms,
        };
        let mut config = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_cert_resolver(Arc::new(sign::SingleCertAndKey::from(current.own.clone())));
        config.alpn_protocols = vec![b"h2".to_vec()];
        config.resumption = client::Resumption::disabled();
        Ok(config)
    }

    /// The configuration for calls to servers outside the mesh, whose certificates our authorities
    /// issued for the name in their address. We present our certificate.
    pub fn web_client_config(&self) -> Result<ClientConfig, rustls::Error> {
        let (provider, current) = (&self.shared.provider, self.shared.current.load());
        let mut config = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(current.roots.clone())
            .with_client_cert_resolver(Arc::new(sign::SingleCertAndKey::from(current.own.clone())));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = client::Resumption::disabled();
        Ok(config)
    }

    fn read_changed(&self) -> Result<Option<Credentials>, Vec<ConfigFault>> {
        let Shared {
            config,
            provider,
            service,
            current,
            ..
        } = &*self.shared;
        let files = Files::read(config)?;
        if files.digest() == current.load().digest {
            return Ok(None);
        }
        load::parse(&files, config, *service, provider).map(Some)
    }
}
