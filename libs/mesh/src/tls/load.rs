//! Reads certificate, key and authorities from their files, and refuses files that would only fail
//! later, in a handshake, with an unclear error.

use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use servo_model::Service;
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::identity;
use crate::clock;
use crate::config::Tls;
use crate::fault::ConfigFault;

/// The three files, parsed and validated.
pub(crate) struct Credentials {
    pub(crate) own: Arc<CertifiedKey>,
    pub(crate) roots: Arc<RootCertStore>,
    /// The expiry of our own certificate, in seconds since 1970.
    pub(crate) expires_at: i64,
    /// The hash of the files' bytes, to detect changes.
    pub(crate) digest: [u8; 32],
}

/// The unparsed content of the files.
pub(crate) struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
    ca: Vec<u8>,
}

impl Files {
    pub(crate) fn read(config: &Tls) -> Result<Files, Vec<ConfigFault>> {
        let mut faults = Vec::new();
        let mut read = |key: &str, path: &Path| {
            std::fs::read(path).unwrap_or_else(|error| {
                faults.push(fault(key, path, &format!("cannot be read: {error}")));
                Vec::new()
            })
        };
        let certificate = read("certificate", &config.certificate);
        let key = read("key", &config.key);
        let ca = read("ca", &config.ca);
        if faults.is_empty() {
            Ok(Files {
                certificate,
                key,
                ca,
            })
        } else {
            Err(faults)
        }
    }

    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in [&self.certificate, &self.key, &self.ca] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

pub(crate) fn parse(
    files: &Files,
    config: &Tls,
    service: Service,
    provider: &CryptoProvider,
) -> Result<Credentials, Vec<ConfigFault>> {
    let chain =
        chain_of(&files.certificate).map_err(|e| fault("certificate", &config.certificate, &e));
    let key = key_of(&files.key).map_err(|e| fault("key", &config.key, &e));
    let roots = roots_of(&files.ca).map_err(|e| fault("ca", &config.ca, &e));
    let (chain, key, roots) = match (chain, key, roots) {
        (Ok(chain), Ok(key), Ok(roots)) => (chain, key, roots),
        (chain, key, roots) => {
            return Err([chain.err(), key.err(), roots.err()]
                .into_iter()
                .flatten()
                .collect());
        }
    };
    let bad_certificate =
        |sentence: String| vec![fault("certificate", &config.certificate, &sentence)];
    let expires_at = check_own_certificate(&chain[0], service, clock::now().unix_seconds())
        .map_err(bad_certificate)?;
    let own = CertifiedKey::from_der(chain, key, provider).map_err(|error| {
        vec![fault(
            "key",
            &config.key,
            &mismatch(&error, &config.certificate),
        )]
    })?;
    Ok(Credentials {
        own: Arc::new(own),
        roots: Arc::new(roots),
        expires_at,
        digest: files.digest(),
    })
}

fn chain_of(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = chain.map_err(|error| format!("is not PEM: {error}"))?;
    if chain.is_empty() {
        Err("holds no PEM certificate".to_owned())
    } else {
        Ok(chain)
    }
}

fn key_of(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| format!("holds no PEM private key: {error}"))
}

fn roots_of(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in chain_of(pem)? {
        roots
            .add(certificate)
            .map_err(|error| format!("holds a certificate that is not an authority: {error}"))?;
    }
    Ok(roots)
}

/// Checks that our certificate is valid now and names this service. Returns its expiry.
fn check_own_certificate(
    certificate: &CertificateDer<'_>,
    service: Service,
    now: i64,
) -> Result<i64, String> {
    let (_, parsed) = X509Certificate::from_der(certificate)
        .map_err(|error| format!("is not an X.509 certificate: {error}"))?;
    let validity = parsed.validity();
    if now > validity.not_after.timestamp() {
        return Err(format!(
            "expired on {}; issue a new certificate",
            validity.not_after
        ));
    }
    if now < validity.not_before.timestamp() {
        return Err(format!(
            "is valid only from {}; check the clock",
            validity.not_before
        ));
    }
    let expected = service.spiffe_id();
    match identity::spiffe_ids(certificate)
        .unwrap_or_default()
        .as_slice()
    {
        [] => Err(format!(
            "carries no SPIFFE id; issue it with the URI {expected}"
        )),
        [id] if *id == expected => Ok(validity.not_after.timestamp()),
        ids => Err(format!(
            "is for {}, but this service is {expected}",
            ids.join(" and ")
        )),
    }
}

fn mismatch(error: &rustls::Error, certificate: &Path) -> String {
    match error {
        rustls::Error::InconsistentKeys(_) => {
            format!(
                "does not belong to the certificate {}",
                certificate.display()
            )
        }
        other => format!("cannot be used: {other}"),
    }
}

fn fault(key: &str, path: &Path, sentence: &str) -> ConfigFault {
    ConfigFault {
        key: format!("tls.{key}"),
        sentence: format!("the file {} {sentence}", path.display()),
    }
}
