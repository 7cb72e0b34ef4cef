//! Sends ended spans to the collector in batches. What it cannot take in time is dropped and counted.

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
use super::{SpanLayer, collector, collector_uri, dropped};
use crate::fault::{Fault, with_causes};
use crate::shutdown::Shutdown;
use crate::tls::Tls;

/// A few megabytes at most; at ten thousand spans a second it outlasts a collector's pause of most of a second.
const QUEUED_SPANS_MAX: usize = 8_192;
const SPANS_PER_BATCH_MAX: usize = 512;
/// How long the first span of a batch waits for others.
const GATHER: Duration = Duration::from_millis(500);
/// A collector that takes longer for a batch has lost it.
const PATIENCE: Duration = Duration::from_secs(5);
/// A collector that is away is away for every batch; it is told of once in a while.
const TELL_EVERY: Duration = Duration::from_secs(60);

const _: () = assert!(SPANS_PER_BATCH_MAX <= QUEUED_SPANS_MAX);

/// Exports in the background, until it is asked to finish.
pub struct Exporter {
    task: JoinHandle<()>,
    stop: CancellationToken,
}

/// A layer that gives its spans to an exporter that runs.
pub(crate) fn start(
    endpoint: &str,
    home: Service,
    tls: &Tls,
) -> Result<(SpanLayer, Exporter), Fault> {
    // The address was checked when the configuration was read.
    let uri = collector_uri(endpoint).unwrap_or_default();
    let client = collector::client(&uri, tls)?;
    let (ended, queue) = mpsc::channel(QUEUED_SPANS_MAX);
    let stop = CancellationToken::new();
    let work = Work {
        client,
        queue,
        stop: stop.clone(),
        told: None,
    };
    Ok((
        SpanLayer::new(home, ended),
        Exporter {
            task: servo_actor::spawn_task("span exporter", work.run()),
            stop,
        },
    ))
}

impl Exporter {
    /// Sends what is still here, within what `grace` has left and unless everything shall end at once.
    pub async fn finish(self, shutdown: &Shutdown, grace: Duration) {
        self.stop.cancel();
        tokio::select! {
            _ = self.task => {}
            () = tokio::time::sleep(shutdown.left_of(grace)) => {
                warn!("the last spans did not reach telemetry.otlp_endpoint within server.grace");
            }
            () = shutdown.ended() => {}
        }
    }
}

struct Work {
    client: TraceServiceClient<Channel>,
    queue: mpsc::Receiver<(Service, Span)>,
    stop: CancellationToken,
    told: Option<Instant>,
}

impl Work {
    async fn run(mut self) {
        loop {
            let batch = self.gather().await;
            if batch.is_empty() {
                return;
            }
            for (service, spans) in by_service(batch) {
                self.send(service, spans).await;
            }
        }
    }

    /// The next batch: a full one, or what came while its first span waited. Empty once it shall stop and all is sent.
    async fn gather(&mut self) -> Vec<(Service, Span)> {
        let mut batch = Vec::new();
        let mut taken = self.take(&mut batch).await;
        let others = async {
            while taken > 0 && batch.len() < SPANS_PER_BATCH_MAX {
                taken = self.take(&mut batch).await;
            }
        };
        let _ = tokio::time::timeout(GATHER, others).await;
        batch
    }

    /// Waits for spans, of which none come any more once it shall stop and the queue is empty.
    async fn take(&mut self, batch: &mut Vec<(Service, Span)>) -> usize {
        let room = SPANS_PER_BATCH_MAX - batch.len();
        tokio::select! {
            taken = self.queue.recv_many(batch, room) => return taken,
            () = self.stop.cancelled() => self.queue.close(),
        }
        self.queue.recv_many(batch, room).await
    }

    async fn send(&mut self, service: Service, spans: Vec<Span>) {
        let count = spans.len() as u64;
        let exported =
            tokio::time::timeout(PATIENCE, self.client.export(request(service, spans))).await;
        let (lost, why) = match exported {
            Ok(Ok(answer)) => rejected(answer.into_inner()),
            Ok(Err(status)) => (count, with_causes(&status)),
            Err(_elapsed) => (count, format!("no answer within {PATIENCE:?}")),
        };
        if lost > 0 {
            dropped(service).inc_by(lost);
            self.tell(&why);
        }
    }

    fn tell(&mut self, why: &str) {
        if self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            self.told = Some(Instant::now());
            warn!(
                why,
                "spans were lost: telemetry.otlp_endpoint did not take them"
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

/// How many a collector that answered did not want, and why.
fn rejected(answer: ExportTraceServiceResponse) -> (u64, String) {
    let partial = answer.partial_success.unwrap_or_default();
    (
        partial.rejected_spans.try_into().unwrap_or(0),
        partial.error_message,
    )
}
