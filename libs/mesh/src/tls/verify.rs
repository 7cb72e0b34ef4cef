//! How a client verifies a server: a chain to our authorities, and the expected identity. DNS names
//! are not checked, because services move and certificates do not name their addresses.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use servo_model::Service;

use super::identity::{self, PeerIdentity};

#[derive(Debug)]
pub(crate) struct ExpectService {
    pub(crate) service: Service,
    pub(crate) roots: Arc<RootCertStore>,
    pub(crate) algorithms: WebPkiSupportedAlgorithms,
}

/// The server has another identity than expected.
#[derive(Debug, Clone, thiserror::Error)]
#[error("presented the identity {found}, but {} was expected", .expected.spiffe_id())]
pub(crate) struct WrongIdentity {
    pub(crate) found: PeerIdentity,
    pub(crate) expected: Service,
}

impl ServerCertVerifier for ExpectService {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &self.roots,
            intermediates,
            now,
            self.algorithms.all,
        )?;
        let found = identity::of_certificate(end_entity);
        if found.is(self.service) {
            return Ok(ServerCertVerified::assertion());
        }
        let wrong = WrongIdentity {
            found,
            expected: self.service,
        };
        Err(Error::InvalidCertificate(CertificateError::Other(
            OtherError(Arc::new(wrong)),
        )))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is supported".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
