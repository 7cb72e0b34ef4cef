//! An OpenTelemetry collector that stores the spans it receives.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use data_encoding::HEXLOWER;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Server, ServerTlsConfig};
use tonic::{Request, Response, Status};

/// Serves OTLP over gRPC on loopback until the runtime ends. Cheap to clone.
#[derive(Clone)]
pub struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Vec<ReceivedSpan>>>,
}

/// A span and the name of its service.
#[derive(Debug, Clone)]
pub struct ReceivedSpan {
    pub service: String,
    pub span: Span,
}

impl Collector {
    /// Starts the collector, with TLS if configured.
    pub async fn start(tls: Option<ServerTlsConfig>) -> Result<Collector> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let collector = Collector {
            address: listener.local_addr()?,
            received: Arc::default(),
        };
        let mut server = Server::builder();
        if let Some(tls) = tls {
            server = server.tls_config(tls)?;
        }
        let router = server.add_service(TraceServiceServer::new(collector.clone()));
        let incoming = TcpIncoming::from(tokio::net::TcpListener::from_std(listener)?);
        #[expect(clippy::disallowed_methods, reason = "a collector for tests")]
        tokio::spawn(router.serve_with_incoming(incoming));
        Ok(collector)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All spans received so far.
    pub fn spans(&self) -> Vec<ReceivedSpan> {
        self.received
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The received spans of one trace, by its id in hex.
    pub fn trace(&self, id: &str) -> Vec<ReceivedSpan> {
        self.spans()
            .into_iter()
            .filter(|taken| taken.trace_id() == id)
            .collect()
    }
}

impl ReceivedSpan {
    pub fn trace_id(&self) -> String {
        HEXLOWER.encode(&self.span.trace_id)
    }

    pub fn id(&self) -> String {
        HEXLOWER.encode(&self.span.span_id)
    }

    /// Empty for the root span of a trace.
    pub fn parent_id(&self) -> String {
        HEXLOWER.encode(&self.span.parent_span_id)
    }

    /// The value of an attribute as text.
    pub fn attribute(&self, key: &str) -> Option<String> {
        text(&self.span.attributes, key)
    }
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let received = request
            .into_inner()
            .resource_spans
            .into_iter()
            .flat_map(spans_of);
        self.received
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(received);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn spans_of(of: ResourceSpans) -> Vec<ReceivedSpan> {
    let attributes = of.resource.unwrap_or_default().attributes;
    let service = text(&attributes, "service.name").unwrap_or_default();
    let spans = of.scope_spans.into_iter().flat_map(|scope| scope.spans);
    spans
        .map(|span| ReceivedSpan {
            service: service.clone(),
            span,
        })
        .collect()
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        other => Some(format!("{other:?}")),
    }
}
