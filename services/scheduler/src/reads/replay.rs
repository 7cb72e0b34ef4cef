//! Folding a run again from its events, because rows contain only the present state.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_model::TaskRef;
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::Event;

use crate::core::{Changes, Plan, Run, Verdict, fold};
use crate::wire;

/// The effect of one event.
#[derive(Debug)]
pub(crate) struct ReplayStep {
    pub(crate) body: Body,
    pub(crate) verdict: Verdict,
    pub(crate) changes: Changes,
}

/// A run while its events are folded.
#[derive(Debug)]
pub(crate) struct Replay {
    number: i64,
    /// The plan that PlanCreated names.
    pub(crate) plan: Option<Arc<Plan>>,
    /// Set by the first event.
    pub(crate) replayed: Option<ReplayedRun>,
}

#[derive(Debug)]
pub(crate) struct ReplayedRun {
    pub(crate) requested: pb::RunRequested,
    pub(crate) run: Run,
    pub(crate) plan_fingerprint: String,
    /// The last error of each task, encoded.
    pub(crate) errors: BTreeMap<TaskRef, Vec<u8>>,
}

impl Replay {
    pub(crate) fn new(number: i64, plan: Option<Arc<Plan>>) -> Replay {
        Replay {
            number,
            plan,
            replayed: None,
        }
    }

    /// Folds the next event. Returns `None` for events before the request and for events that the
    /// fold does not use.
    pub(crate) fn fold(&mut self, event: &Event) -> Result<Option<ReplayStep>, String> {
        let Ok((body, trace)) = wire::body_of(&event.payload) else {
            return Ok(None);
        };
        let at = event.recorded_at;
        let Some(replayed) = &mut self.replayed else {
            let Body::RunRequested(requested) = &body else {
                return Ok(None);
            };
            let tenant = event.tenant.tenant().ok_or("the event has no tenant")?;
            let header = wire::header(
                tenant,
                &event.workspace,
                self.number,
                requested,
                trace.as_ref(),
                at,
            );
            let run = Run::requested(header.map_err(|bad| bad.to_string())?);
            let mut changes = Changes {
                run: true,
                ..Changes::default()
            };
            changes.run_history.push((None, run.state, run.reason));
            let (requested, errors) = (requested.clone(), BTreeMap::new());
            self.replayed = Some(ReplayedRun {
                requested,
                run,
                plan_fingerprint: String::new(),
                errors,
            });
            return Ok(Some(ReplayStep {
                body,
                verdict: Verdict::Folded,
                changes,
            }));
        };
        let Ok(happened) = wire::from_body(&body, self.plan.as_ref()) else {
            return Ok(None);
        };
        let mut changes = Changes::default();
        let verdict = fold(&mut replayed.run, &happened, at, &mut changes);
        if let (Body::PlanCreated(created), Verdict::Folded) = (&body, &verdict) {
            replayed
                .plan_fingerprint
                .clone_from(&created.plan_fingerprint);
        }
        replayed.errors.extend(changes.errors.iter().cloned());
        Ok(Some(ReplayStep {
            body,
            verdict,
            changes,
        }))
    }
}
