//! One connection to a peer: TCP, TLS, the server's identity, and a clear description of failures.
//!
//! With TLS 1.3 a client finishes its handshake before the server has verified its certificate, so
//! a refusal arrives later, as an alert on the first read. [`ObservedStream`] records it, so that
//! the failing call can report it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError};
use servo_model::Service;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::fault::with_causes;
use crate::tls::{Tls, WrongIdentity};

/// The reason why there is no connection.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum ConnectError {
    /// There is no server at the address, or it does not use TLS.
    #[error("{0}")]
    Unreachable(String),
    /// One side does not accept the other's certificate.
    #[error("{0}")]
    NotTrusted(String),
}

/// The server to connect to, and our own identity.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) service: Service,
    pub(super) address: Uri,
    pub(super) own_identity: String,
    pub(super) tls: Tls,
    pub(super) timeout: Duration,
}

/// Why the latest connection broke, if it did. It is only used in error messages, never to decide
/// about retries.
pub(super) type LastFailure = Arc<Mutex<Option<ConnectError>>>;

impl Target {
    pub(super) async fn connect(
        self,
        last_failure: LastFailure,
    ) -> Result<TokioIo<ObservedStream>, ConnectError> {
        let connected = tokio::time::timeout(self.timeout, self.handshake()).await;
        let timed_out =
            || self.unreachable(&format!("no TLS connection within {:?}", self.timeout));
        let stream = connected.unwrap_or_else(|_| Err(timed_out()))?;
        *last_failure.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(TokioIo::new(ObservedStream {
            stream,
            target: self,
            last_failure,
            received_data: false,
        }))
    }

    async fn handshake(&self) -> Result<TlsStream<TcpStream>, ConnectError> {
        let host = self
            .address
            .host()
            .unwrap_or_default()
            .trim_matches(['[', ']']);
        let port = self
            .address
            .port_u16()
            .unwrap_or(self.service.default_port());
        let tcp = TcpStream::connect((host, port))
            .await
            .map_err(|error| self.unreachable(&error.to_string()))?;
        tcp.set_nodelay(true)
            .map_err(|error| self.unreachable(&error.to_string()))?;
        let config = self
            .tls
            .client_config(self.service)
            .map_err(|error| self.not_trusted(&error.to_string()))?;
        let name = ServerName::try_from(self.service.name())
            .map_err(|error| self.not_trusted(&error.to_string()))?;
        let connecting = TlsConnector::from(Arc::new(config)).connect(name, tcp);
        connecting.await.map_err(|error| self.explain(&error))
    }

    /// Explains an IO error of a TLS stream: which certificate, which file, which side.
    fn explain(&self, error: &io::Error) -> ConnectError {
        let tls = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match tls {
            Some(rustls::Error::AlertReceived(alert)) => self.peer_refused_our_certificate(*alert),
            Some(rustls::Error::InvalidCertificate(why)) => self.server_certificate_error(why),
            Some(rustls::Error::InvalidMessage(_)) => self.unreachable("it does not speak TLS"),
            Some(rustls::Error::PeerIncompatible(why)) => {
                self.unreachable(&format!("no common TLS: {why:?}"))
            }
            _ => self.unreachable(&error.to_string()),
        }
    }

    fn peer_refused_our_certificate(&self, alert: AlertDescription) -> ConnectError {
        let own = &self.own_identity;
        self.not_trusted(&match alert {
            AlertDescription::UnknownCA | AlertDescription::DecryptError => {
                format!("it refused our certificate {own}: its tls.ca does not vouch for it")
            }
            AlertDescription::CertificateExpired => {
                format!("it refused our certificate {own}: it has expired")
            }
            AlertDescription::CertificateRequired => {
                "it requires a certificate and we presented none".to_owned()
            }
            AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::AccessDenied => {
                format!("it refused our certificate {own} ({alert:?})")
            }
            other => return self.unreachable(&format!("it ended the TLS handshake ({other:?})")),
        })
    }

    fn server_certificate_error(&self, why: &CertificateError) -> ConnectError {
        let wrong_identity = match why {
            CertificateError::Other(other) => other.0.downcast_ref::<WrongIdentity>(),
            _ => None,
        };
        self.not_trusted(&match (wrong_identity, why) {
            (Some(wrong), _) => format!("it {wrong}"),
            (_, CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
                "it presented a certificate that our tls.ca does not vouch for".to_owned()
            }
            (_, CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
                "it presented a certificate that has expired".to_owned()
            }
            (_, other) => format!("it presented a certificate we do not accept ({other})"),
        })
    }

    pub(super) fn unexplained(&self, error: &dyn std::error::Error) -> ConnectError {
        self.unreachable(&with_causes(error))
    }

    fn unreachable(&self, why: &str) -> ConnectError {
        ConnectError::Unreachable(format!(
            "{} at {} cannot be reached: {why}",
            self.service,
            self.authority()
        ))
    }

    fn not_trusted(&self, why: &str) -> ConnectError {
        ConnectError::NotTrusted(format!(
            "{} at {} and we do not trust each other: {why}",
            self.service,
            self.authority()
        ))
    }

    fn authority(&self) -> &str {
        self.address
            .authority()
            .map_or("", |authority| authority.as_str())
    }
}

/// A TLS stream that records why it broke.
pub(super) struct ObservedStream {
    stream: TlsStream<TcpStream>,
    target: Target,
    last_failure: LastFailure,
    received_data: bool,
}

impl ObservedStream {
    /// If the first read fails, the alert is the server's verdict on our certificate.
    fn note(&mut self, error: ConnectError) {
        *self
            .last_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

impl AsyncRead for ObservedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        match &polled {
            Poll::Ready(Ok(())) if buf.filled().len() > before => self.received_data = true,
            Poll::Ready(Ok(())) if !self.received_data => {
                let error = self
                    .target
                    .unreachable("it closed the connection right after the TLS handshake");
                self.note(error);
            }
            Poll::Ready(Err(error)) => {
                let error = self.target.explain(error);
                self.note(error);
            }
            _ => {}
        }
        polled
    }
}

impl AsyncWrite for ObservedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
