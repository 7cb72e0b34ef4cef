//! One connection to a peer: TCP, TLS, the server's identity, and a clear word about what went wrong.
//!
//! With TLS 1.3 a client is done with its handshake before the server has judged its certificate: the refusal
//! arrives later, as an alert on the first read. [`Observed`] keeps it, so that the failing call can tell.

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

/// Why there is no connection.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum Trouble {
    /// Nobody there, or nobody who speaks TLS.
    #[error("{0}")]
    Unreachable(String),
    /// One side does not accept the other's certificate.
    #[error("{0}")]
    NotTrusted(String),
}

/// What to connect to and as whom.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) service: Service,
    pub(super) address: Uri,
    pub(super) own_identity: String,
    pub(super) tls: Tls,
    pub(super) timeout: Duration,
}

/// Why the latest connection broke, if it did. It only explains; what may be repeated is never judged by it.
pub(super) type LastEnd = Arc<Mutex<Option<Trouble>>>;

impl Target {
    pub(super) async fn connect(self, last_end: LastEnd) -> Result<TokioIo<Observed>, Trouble> {
        let connected = tokio::time::timeout(self.timeout, self.shake_hands()).await;
        let timed_out =
            || self.unreachable(&format!("no TLS connection within {:?}", self.timeout));
        let stream = connected.unwrap_or_else(|_| Err(timed_out()))?;
        *last_end.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(TokioIo::new(Observed {
            stream,
            target: self,
            last_end,
            heard: false,
        }))
    }

    async fn shake_hands(&self) -> Result<TlsStream<TcpStream>, Trouble> {
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

    /// An IO error of a TLS stream in words that say which certificate, which file, which side.
    fn explain(&self, error: &io::Error) -> Trouble {
        let tls = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match tls {
            Some(rustls::Error::AlertReceived(alert)) => self.refused_us(*alert),
            Some(rustls::Error::InvalidCertificate(why)) => self.refuse_them(why),
            Some(rustls::Error::InvalidMessage(_)) => self.unreachable("it does not speak TLS"),
            Some(rustls::Error::PeerIncompatible(why)) => {
                self.unreachable(&format!("no common TLS: {why:?}"))
            }
            _ => self.unreachable(&error.to_string()),
        }
    }

    fn refused_us(&self, alert: AlertDescription) -> Trouble {
        let own = &self.own_identity;
        self.not_trusted(&match alert {
            AlertDescription::UnknownCA | AlertDescription::DecryptError => {
                format!("it refused our certificate {own}: its tls.ca does not vouch for it")
            }
            AlertDescription::CertificateExpired => {
                format!("it refused our certificate {own}: it has expired")
            }
            AlertDescription::CertificateRequired => {
                "it wants a certificate and we showed none".to_owned()
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

    fn refuse_them(&self, why: &CertificateError) -> Trouble {
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

    pub(super) fn unexplained(&self, error: &dyn std::error::Error) -> Trouble {
        self.unreachable(&with_causes(error))
    }

    fn unreachable(&self, why: &str) -> Trouble {
        Trouble::Unreachable(format!(
            "{} at {} cannot be reached: {why}",
            self.service,
            self.authority()
        ))
    }

    fn not_trusted(&self, why: &str) -> Trouble {
        Trouble::NotTrusted(format!(
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

/// A TLS stream that remembers why it broke.
pub(super) struct Observed {
    stream: TlsStream<TcpStream>,
    target: Target,
    last_end: LastEnd,
    heard: bool,
}

impl Observed {
    /// A first read that fails is the server's judgement of our certificate, if it said one.
    fn note(&mut self, trouble: Trouble) {
        *self.last_end.lock().unwrap_or_else(PoisonError::into_inner) = Some(trouble);
    }
}

impl AsyncRead for Observed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        match &polled {
            Poll::Ready(Ok(())) if buf.filled().len() > before => self.heard = true,
            Poll::Ready(Ok(())) if !self.heard => {
                let trouble = self
                    .target
                    .unreachable("it closed the connection right after the TLS handshake");
                self.note(trouble);
            }
            Poll::Ready(Err(error)) => {
                let trouble = self.target.explain(error);
                self.note(trouble);
            }
            _ => {}
        }
        polled
    }
}

impl AsyncWrite for Observed {
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
