//! The connection to the collector.

use std::io;
use std::sync::Arc;

use http::Uri;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel, Endpoint};

use crate::fault::Fault;
use crate::tls::Tls;

/// Creates a client that connects at the first call and reconnects when necessary.
pub(super) fn client(uri: &Uri, tls: &Tls) -> Result<TraceServiceClient<Channel>, Fault> {
    if uri.scheme_str() == Some("http") {
        return Ok(TraceServiceClient::new(
            Endpoint::from(uri.clone()).connect_lazy(),
        ));
    }
    let (host, port, tls) = (
        host(uri).to_owned(),
        uri.port_u16().unwrap_or_default(),
        tls.clone(),
    );
    // Tonic makes TLS connections itself unless the address has the scheme http. Our own connector
    // uses the current certificates, also after they are replaced.
    let endpoint = Endpoint::from_shared(format!(
        "http://{}",
        uri.authority().map_or("", |it| it.as_str())
    ))?;
    let connector = tower::service_fn(move |_: Uri| connect(host.clone(), port, tls.clone()));
    let channel = endpoint
        .origin(uri.clone())
        .connect_with_connector_lazy(connector);
    Ok(TraceServiceClient::new(channel))
}

async fn connect(host: String, port: u16, tls: Tls) -> io::Result<TokioIo<TlsStream<TcpStream>>> {
    let tcp = TcpStream::connect((host.as_str(), port)).await?;
    let mut config = tls.web_client_config().map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    Ok(TokioIo::new(
        TlsConnector::from(Arc::new(config))
            .connect(name, tcp)
            .await?,
    ))
}

fn host(uri: &Uri) -> &str {
    uri.host().unwrap_or_default().trim_matches(['[', ']'])
}
