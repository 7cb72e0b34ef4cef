//! Sends ended spans to the collector in batches. Spans that it does not accept in time are dropped
//! and counted.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use servo_model::Service;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tracing::warn;

use super::draft::attribute;
use super::{SpanLayer, collector};
use crate::config::collector_uri;
use crate::dropped_spans::dropped;
use crate::fault::{Fault, with_causes};
use crate::shutdown::Shutdown;
use crate::tls::Tls;

/// A few megabytes at most; at ten thousand spans per second it absorbs a collector's pause of 0.8
/// s.
const QUEUED_SPANS_MAX: usize = 8_192;
const SPANS_PER_BATCH_MAX: usize = 512;
/// How long the first span of a batch waits for more.
const BATCH_DELAY_MAX: Duration = Duration::from_millis(500);
/// A batch that takes longer is lost.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// An unavailable collector loses every batch, so the warning is logged only this often.
const WARN_EVERY: Duration = Duration::from_secs(60);

const _: () = assert!(SPANS_PER_BATCH_MAX <= QUEUED_SPANS_MAX);

/// Exports in the background until [`Exporter::finish`].
pub struct Exporter {
    task: JoinHandle<()>,
    stop: CancellationToken,
}

/// Starts an exporter and returns the layer that feeds it.
pub(crate) fn start(
    endpoint: &str,
    default_service: Service,
    tls: &Tls,
) -> Result<(SpanLayer, Exporter), Fault> {
    // The address was checked when the configuration was read.
    let uri = collector_uri(endpoint).unwrap_or_default();
    let client = collector::client(&uri, tls)?;
    let (ended, queue) = mpsc::channel(QUEUED_SPANS_MAX);
    let stop = CancellationToken::new();
    let task = ExportTask {
        client,
        queue,
        stop: stop.clone(),
        last_warning: None,
    };
    Ok((
        SpanLayer::new(default_service, ended),
        Exporter {
            task: servo_actor::spawn_task("span exporter", task.run()),
            stop,
        },
    ))
}

impl Exporter {
    /// Sends the remaining spans within the rest of `grace`, unless the process must end
    /// immediately.
    pub async fn finish(self, shutdown: &Shutdown, grace: Duration) {
        self.stop.cancel();
        tokio::select! {
            _ = self.task => {}
            () = tokio::time::sleep(shutdown.rest_of(grace)) => {
                warn!("the last spans did not reach telemetry.otlp_endpoint within server.grace");
            }
            () = shutdown.ended() => {}
        }
    }
}

struct ExportTask {
    client: TraceServiceClient<Channel>,
    queue: mpsc::Receiver<(Service, Span)>,
    stop: CancellationToken,
    last_warning: Option<Instant>,
}

impl ExportTask {
    async fn run(mut self) {
        loop {
            let batch = self.next_batch().await;
            if batch.is_empty() {
                return;
            }
            for (service, spans) in by_service(batch) {
                self.send(service, spans).await;
            }
        }
    }

    /// Returns the next batch: a full one, or the spans that arrived within `BATCH_DELAY_MAX`.
    /// Empty when the exporter stops and everything is sent.
    async fn next_batch(&mut self) -> Vec<(Service, Span)> {
        let mut batch = Vec::new();
        let mut received = self.receive(&mut batch).await;
        let more = async {
            while received > 0 && batch.len() < SPANS_PER_BATCH_MAX {
                received = self.receive(&mut batch).await;
            }
        };
        let _ = tokio::time::timeout(BATCH_DELAY_MAX, more).await;
        batch
    }

    /// Waits for spans. Returns 0 when the exporter stops and the queue is empty.
    async fn receive(&mut self, batch: &mut Vec<(Service, Span)>) -> usize {
        let capacity = SPANS_PER_BATCH_MAX - batch.len();
        tokio::select! {
            received = self.queue.recv_many(batch, capacity) => return received,
            () = self.stop.cancelled() => self.queue.close(),
        }
        self.queue.recv_many(batch, capacity).await
    }

    async fn send(&mut self, service: Service, spans: Vec<Span>) {
        let count = spans.len() as u64;
        let exported =
            tokio::time::timeout(EXPORT_TIMEOUT, self.client.export(request(service, spans))).await;
        let (lost, why) = match exported {
            Ok(Ok(answer)) => rejected(answer.into_inner()),
            Ok(Err(status)) => (count, with_causes(&status)),
            Err(_elapsed) => (count, format!("no answer within {EXPORT_TIMEOUT:?}")),
        };
        if lost > 0 {
            dropped(service).inc_by(lost);
            self.warn_lost(&why);
        }
    }

    fn warn_lost(&mut self, why: &str) {
        if self
            .last_warning
            .is_none_or(|at| at.elapsed() >= WARN_EVERY)
        {
            self.last_warning = Some(Instant::now());
            warn!(
                why,
                "spans were lost: telemetry.otlp_endpoint did not accept them"
            );
        }
    }
}

fn by_service(batch: Vec<(Service, Span)>) -> BTreeMap<Service, Vec<Span>> {
    let mut spans = BTreeMap::<Service, Vec<Span>>::new();
    for (service, span) in batch {
        spans.entry(service).or_default().push(span);
    }
    spans
}

fn request(service: Service, spans: Vec<Span>) -> ExportTraceServiceRequest {
    let text = |key, text: String| attribute(key, Value::StringValue(text));
    let version = env!("CARGO_PKG_VERSION");
    let resource = Resource {
        attributes: vec![
            text("service.name", format!("servo-{service}")),
            text("service.version", version.to_owned()),
        ],
        ..Default::default()
    };
    let scope = InstrumentationScope {
        name: "servo".to_owned(),
        version: version.to_owned(),
        ..Default::default()
    };
    let scope_spans = ScopeSpans {
        scope: Some(scope),
        spans,
        ..Default::default()
    };
    let resource_spans = ResourceSpans {
        resource: Some(resource),
        scope_spans: vec![scope_spans],
        ..Default::default()
    };
    ExportTraceServiceRequest {
        resource_spans: vec![resource_spans],
    }
}

/// Returns how many spans the collector rejected, and why.
fn rejected(answer: ExportTraceServiceResponse) -> (u64, String) {
    let partial = answer.partial_success.unwrap_or_default();
    (
        partial.rejected_spans.try_into().unwrap_or(0),
        partial.error_message,
    )
}
