//! Follows the spans that are exported, from their begin to their end.

use opentelemetry_proto::tonic::trace::v1::Span;
use servo_model::Service;
use tokio::sync::mpsc;
use tracing::Subscriber;
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::draft::{self, Draft};
use super::dropped;
use super::filter::is_exported;

pub(crate) struct SpanLayer {
    /// The service whose process it is, for spans that tell of none.
    home: Service,
    ended: mpsc::Sender<(Service, Span)>,
}

impl SpanLayer {
    pub(super) fn new(home: Service, ended: mpsc::Sender<(Service, Span)>) -> SpanLayer {
        SpanLayer { home, ended }
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
            .find_map(|above| draft::context_of(&above));
        let mut draft = Draft::new(attributes.metadata(), self.home, parent);
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
    use tracing::{Span as Made, debug_span, dispatcher, info_span, subscriber, warn_span};
    use tracing_subscriber::EnvFilter;
    use tracing_subscriber::layer::SubscriberExt;

    use super::super::{LoggedOrExported, continue_trace, current, place};
    use super::*;
    use crate::trace::TraceContext;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    /// What is exported of the spans that `make` makes, where a queue holds `room`.
    fn exported(room: usize, make: impl FnOnce()) -> Vec<(Service, Span)> {
        let (ended, mut queue) = mpsc::channel(room);
        let filter = LoggedOrExported(EnvFilter::new("warn"));
        let layers = tracing_subscriber::registry()
            .with(SpanLayer::new(Service::Quota, ended))
            .with(filter);
        subscriber::with_default(layers, make);
        std::iter::from_fn(|| queue.try_recv().ok()).collect()
    }

    #[test]
    fn spans_are_below_the_nearest_exported_one() {
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
    fn a_traceparent_is_continued_if_it_can_be_read() {
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
    fn a_span_is_of_the_service_it_names_or_whose_crate_made_it() {
        let spans = exported(9, || {
            drop(info_span!("rpc", service = "console"));
            drop(info_span!(target: "servo_dispatcher::loops::engine", "servo.dispatch_task"));
            drop(info_span!("servo.of_nobody"));
        });
        let services: Vec<Service> = spans.iter().map(|(service, _)| *service).collect();
        assert_eq!(
            services,
            [Service::Console, Service::Dispatcher, Service::Quota]
        );
    }

    #[test]
    fn what_is_not_sampled_is_not_exported_nor_what_is_below_it() {
        let unsampled = TraceContext::parse(&PARENT.replace("-01", "-00")).unwrap();
        let spans = exported(9, || {
            let rpc = info_span!("rpc");
            place(&rpc, &unsampled.child(), Some(unsampled));
            rpc.in_scope(|| drop(info_span!("servo.plan_run")));
        });
        assert!(spans.is_empty(), "{spans:?}");
    }

    #[test]
    fn a_question_whether_something_is_logged_loses_no_span() {
        let spans = exported(9, || {
            let quiet = info_span!("quiet");
            dispatcher::get_default(|dispatch| dispatch.enabled(quiet.metadata().unwrap()));
            drop(info_span!("servo.plan_run"));
        });
        assert_eq!(spans.len(), 1);
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let before = dropped(Service::Quota).get();
        let spans = exported(2, || (0..5).for_each(|_| drop(info_span!("servo.many"))));
        assert_eq!(
            (spans.len(), dropped(Service::Quota).get() - before),
            (2, 3)
        );
    }

    #[test]
    fn without_an_exporter_nothing_is_kept() {
        subscriber::with_default(tracing_subscriber::registry(), || {
            let span: Made = info_span!("servo.plan_run");
            continue_trace(&span, PARENT);
            assert_eq!(span.in_scope(current), None);
        });
    }
}
