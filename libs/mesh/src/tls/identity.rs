//! The identity of a peer: the SPIFFE URI in its certificate.

use std::fmt;

use rustls::pki_types::CertificateDer;
use servo_model::service::TRUST_DOMAIN;
use servo_model::{Service, TenantScope};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// The identity that a verified certificate proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerIdentity {
    /// `spiffe://servo/<service>`
    Service(Service),
    /// `spiffe://servo/worker/<tenant>`
    Worker { tenant: TenantScope },
    /// A certificate of our authorities with an unknown identity.
    Other(String),
    /// No certificate, which only a public listener accepts.
    Anonymous,
}

impl PeerIdentity {
    pub fn parse(spiffe_id: &str) -> PeerIdentity {
        let other = || PeerIdentity::Other(spiffe_id.to_owned());
        let Some(name) = spiffe_id.strip_prefix(TRUST_DOMAIN) else {
            return other();
        };
        if let Some(tenant) = name.strip_prefix("worker/") {
            return tenant
                .parse()
                .map_or_else(|_| other(), |tenant| PeerIdentity::Worker { tenant });
        }
        name.parse().map_or_else(|_| other(), PeerIdentity::Service)
    }

    pub fn is(&self, service: Service) -> bool {
        *self == PeerIdentity::Service(service)
    }
}

impl fmt::Display for PeerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerIdentity::Service(service) => f.write_str(&service.spiffe_id()),
            PeerIdentity::Worker { tenant } => write!(f, "{TRUST_DOMAIN}worker/{tenant}"),
            PeerIdentity::Other(id) if id.is_empty() => {
                f.write_str("a certificate without a SPIFFE id")
            }
            PeerIdentity::Other(id) => f.write_str(id),
            PeerIdentity::Anonymous => f.write_str("an anonymous client (no certificate)"),
        }
    }
}

/// Returns the identity in a certificate. SPIFFE allows exactly one URI; none or several prove
/// nothing.
pub(crate) fn of_certificate(certificate: &CertificateDer<'_>) -> PeerIdentity {
    match spiffe_ids(certificate).as_deref() {
        Some([only]) => PeerIdentity::parse(only),
        Some(several) => PeerIdentity::Other(several.join(" ")),
        None => PeerIdentity::Other(String::new()),
    }
}

pub(crate) fn spiffe_ids(certificate: &CertificateDer<'_>) -> Option<Vec<String>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let names = parsed.subject_alternative_name().ok()??;
    let uris = names
        .value
        .general_names
        .iter()
        .filter_map(|name| match name {
            GeneralName::URI(uri) => Some((*uri).to_owned()),
            _ => None,
        });
    Some(uris.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_is_a_service_a_worker_or_unknown() {
        let check =
            |id: &str, expected: PeerIdentity| assert_eq!(PeerIdentity::parse(id), expected);
        for service in Service::ALL {
            check(&service.spiffe_id(), PeerIdentity::Service(service));
        }
        check(
            "spiffe://servo/worker/acme",
            PeerIdentity::Worker {
                tenant: "acme".parse().unwrap(),
            },
        );
        for id in [
            "",
            "spiffe://servo/",
            "spiffe://servo/Planner",
            "spiffe://servo/planner/",
            "spiffe://servo/worker",
            "spiffe://servo/worker/",
            "spiffe://servo/worker/acme/other",
            "spiffe://servo/worker/acme%2fother",
            "spiffe://elsewhere/planner",
            "https://servo/planner",
        ] {
            check(id, PeerIdentity::Other(id.into()));
        }
    }
}
