//! Tracks exported spans from their begin to their end.

use opentelemetry_proto::tonic::trace::v1::Span;
use servo_model::Service;
use tokio::sync::mpsc;
use tracing::Subscriber;
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::draft::{self, Draft};
use super::filter::is_exported;
use crate::dropped_spans::dropped;

pub(crate) struct SpanLayer {
    /// The service of the process, for spans that name no service.
    default_service: Service,
    ended: mpsc::Sender<(Service, Span)>,
}

impl SpanLayer {
    pub(super) fn new(default_service: Service, ended: mpsc::Sender<(Service, Span)>) -> SpanLayer {
        SpanLayer {
            default_service,
            ended,
        }
    }
}

impl<S> Layer<S> for SpanLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id).filter(|span| is_exported(span.metadata())) else {
            return;
        };
        let parent = span
            .scope()
            .skip(1)
            .find_map(|ancestor| draft::context_of(&ancestor));
        let mut draft = Draft::new(attributes.metadata(), self.default_service, parent);
        attributes.record(&mut draft);
        span.extensions_mut().insert(draft);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(draft) = span.extensions_mut().get_mut::<Draft>() {
            values.record(draft);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let draft = context
            .span(&id)
            .and_then(|span| span.extensions_mut().remove::<Draft>());
        let Some((service, span)) = draft.filter(Draft::is_sampled).map(Draft::end) else {
            return;
        };
        if self.ended.try_send((service, span)).is_err() {
            dropped(service).inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing::{Span as TracingSpan, debug_span, dispatcher, info_span, subscriber, warn_span};
    use tracing_subscriber::EnvFilter;
    use tracing_subscriber::layer::SubscriberExt;

    use super::super::{LoggedOrExported, continue_trace, current, set_context};
    use super::*;
    use crate::trace::TraceContext;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    /// Returns the exported spans that `make` creates, with a queue of this capacity.
    fn exported(capacity: usize, make: impl FnOnce()) -> Vec<(Service, Span)> {
        let (ended, mut queue) = mpsc::channel(capacity);
        let filter = LoggedOrExported(EnvFilter::new("warn"));
        let layers = tracing_subscriber::registry()
            .with(SpanLayer::new(Service::Quota, ended))
            .with(filter);
        subscriber::with_default(layers, make);
        std::iter::from_fn(|| queue.try_recv().ok()).collect()
    }

    #[test]
    fn span_is_a_child_of_the_nearest_exported_span() {
        let spans = exported(9, || {
            let outer = debug_span!("servo.outer").entered();
            let _unnamed = warn_span!("unnamed").entered();
            let here = current().unwrap();
            assert_eq!(outer.in_scope(current), Some(here));
            drop(info_span!("servo.inner"));
        });
        let [(_, inner), (_, outer)] = &spans[..] else {
            panic!("{spans:?}")
        };
        assert_eq!(
            (&inner.trace_id, &inner.parent_span_id),
            (&outer.trace_id, &outer.span_id)
        );
        assert!(outer.parent_span_id.is_empty());
    }

    #[test]
    fn well_formed_traceparent_is_continued() {
        let spans = exported(9, || {
            let _outer = info_span!("servo.outer").entered();
            continue_trace(&info_span!("servo.run"), PARENT);
            continue_trace(&info_span!("servo.lost"), "nonsense");
        });
        let [(_, run), (_, lost), (_, outer)] = &spans[..] else {
            panic!("{spans:?}")
        };
        assert_eq!(
            run.parent_span_id,
            TraceContext::parse(PARENT).unwrap().span_id_bytes()
        );
        assert_eq!(lost.parent_span_id, outer.span_id);
    }

    #[test]
    fn span_belongs_to_the_service_it_names_or_whose_crate_created_it() {
        let spans = exported(9, || {
            drop(info_span!("rpc", service = "console"));
            drop(info_span!(target: "servo_dispatcher::loops::engine", "servo.dispatch_task"));
            drop(info_span!("servo.unassigned"));
        });
        let services: Vec<Service> = spans.iter().map(|(service, _)| *service).collect();
        assert_eq!(
            services,
            [Service::Console, Service::Dispatcher, Service::Quota]
        );
    }

    #[test]
    fn unsampled_span_and_its_children_are_not_exported() {
        let unsampled = TraceContext::parse(&PARENT.replace("-01", "-00")).unwrap();
        let spans = exported(9, || {
            let rpc = info_span!("rpc");
            set_context(&rpc, &unsampled.child(), Some(unsampled));
            rpc.in_scope(|| drop(info_span!("servo.plan_run")));
        });
        assert!(spans.is_empty(), "{spans:?}");
    }

    #[test]
    fn checking_whether_something_is_enabled_loses_no_span() {
        let spans = exported(9, || {
            let quiet = info_span!("quiet");
            dispatcher::get_default(|dispatch| dispatch.enabled(quiet.metadata().unwrap()));
            drop(info_span!("servo.plan_run"));
        });
        assert_eq!(spans.len(), 1);
    }

    #[test]
    fn full_queue_drops_and_counts_spans() {
        let before = dropped(Service::Quota).get();
        let spans = exported(2, || {
            (0..5).for_each(|_| drop(info_span!("servo.repeated")))
        });
        assert_eq!(
            (spans.len(), dropped(Service::Quota).get() - before),
            (2, 3)
        );
    }

    #[test]
    fn no_context_is_recorded_without_an_exporter() {
        subscriber::with_default(tracing_subscriber::registry(), || {
            let span: TracingSpan = info_span!("servo.plan_run");
            continue_trace(&span, PARENT);
            assert_eq!(span.in_scope(current), None);
        });
    }
}
