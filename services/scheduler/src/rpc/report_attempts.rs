//! ReportAttempts: starts and outcomes that the callback service forwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_mesh::{Error, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::{AttemptId, RunId};
use servo_proto::v1;
use servo_proto::v1::attempt_report::Report;
use servo_proto::v1::event::Body;
use ulid::Ulid;
use uuid::Uuid;

use super::Scheduler;
use crate::core::Verdict;
use crate::route;
use crate::shards::{Ask, Done, DoneAs, RunEvent};

const REPORTS_MAX: usize = 256;

pub(super) async fn report_attempts(
    scheduler: &Scheduler,
    asked: v1::ReportAttemptsRequest,
) -> Result<v1::ReportAttemptsResponse, Error> {
    if asked.reports.len() > REPORTS_MAX {
        let count = asked.reports.len();
        return Err(Error::bad_field(
            "reports",
            format!("has {count} entries; {REPORTS_MAX} are allowed"),
        ));
    }
    let judged: Vec<Result<Ask, v1::AttemptVerdict>> = asked
        .reports
        .into_iter()
        .map(|report| ask(report).map_err(|why| *why))
        .collect();
    let mut by_shard: BTreeMap<i16, Vec<(usize, Ask)>> = BTreeMap::new();
    for (index, ask) in judged.iter().enumerate() {
        if let Ok(ask) = ask {
            by_shard
                .entry(ask.run_id().shard())
                .or_default()
                .push((index, ask.clone()));
        }
    }
    let submitted = by_shard.into_iter().map(|(shard, asks)| async move {
        let (indexes, asks): (Vec<usize>, Vec<Ask>) = asks.into_iter().unzip();
        (indexes, scheduler.shards.submit(shard, asks).await)
    });
    let lost = || refused(Reason::Internal, "the shard gave no answer");
    let mut verdicts: Vec<v1::AttemptVerdict> = judged
        .into_iter()
        .map(|ask| ask.map_or_else(|refusal| refusal, |_| lost()))
        .collect();
    for (indexes, done) in futures::future::join_all(submitted).await {
        match done {
            Ok(done) => indexes
                .into_iter()
                .zip(done)
                .for_each(|(index, done)| verdicts[index] = verdict(done)),
            Err(error) => {
                let told = route::not_done(&error);
                indexes
                    .into_iter()
                    .for_each(|index| verdicts[index] = refused(told.reason(), &told.to_string()));
            }
        }
    }
    Ok(v1::ReportAttemptsResponse { verdicts })
}

fn ask(report: v1::AttemptReport) -> Result<Ask, Box<v1::AttemptVerdict>> {
    let bad = |what: &str| Box::new(refused(Reason::InvalidField, what));
    let event_id: Ulid = report
        .event_id
        .parse()
        .map_err(|_| bad("event_id is no ULID"))?;
    let attempt = |text: &str| {
        text.parse::<AttemptId>()
            .map_err(|_| bad("attempt_id is malformed"))
    };
    let (run_id, key, body) = match report.report.ok_or_else(|| bad("report is missing"))? {
        Report::Started(started) => {
            let key = IdempotencyKey::task_started(&attempt(&started.attempt_id)?);
            (started.run_id.clone(), key, Body::TaskStarted(started))
        }
        Report::Finished(finished) => {
            let key = IdempotencyKey::task_finished(&attempt(&finished.attempt_id)?);
            (finished.run_id.clone(), key, Body::TaskFinished(finished))
        }
    };
    let run_id: RunId = run_id.parse().map_err(|_| bad("run_id is malformed"))?;
    Ok(Ask::Event(Arc::new(RunEvent {
        tenant: report.tenant,
        run_id,
        event_id: Uuid::from_u128(event_id.into()),
        idempotency_key: key.to_string(),
        body,
        trace: report.trace,
    })))
}

fn verdict(done: Done) -> v1::AttemptVerdict {
    let accepted = |acceptance: v1::Acceptance| v1::AttemptVerdict {
        acceptance: acceptance.into(),
        event_id: crate::wire::ulid(done.event_id),
        ..Default::default()
    };
    match done.verdict {
        DoneAs::Core(Verdict::Folded) => accepted(v1::Acceptance::Folded),
        DoneAs::Core(Verdict::Duplicate) => accepted(v1::Acceptance::Duplicate),
        DoneAs::Core(Verdict::Late) => accepted(v1::Acceptance::Late),
        DoneAs::Core(Verdict::Refused(refusal)) => {
            refused(route::reason(&refusal), &refusal.to_string())
        }
        DoneAs::RunUnknown => refused(Reason::AttemptUnknown, "the attempt's run is not known"),
        // Who hears this records it: a rebuild that can fold the run will find the outcome.
        DoneAs::SetAside => refused(Reason::NotReady, route::SET_ASIDE),
        DoneAs::Bad(why) => refused(Reason::InvalidField, &why),
        DoneAs::TooLarge(why) => refused(Reason::MessageTooLarge, &why),
        other => refused(Reason::Internal, &format!("the shard answered {other:?}")),
    }
}

fn refused(reason: Reason, message: &str) -> v1::AttemptVerdict {
    v1::AttemptVerdict {
        acceptance: v1::Acceptance::Refused.into(),
        refusal: reason.into(),
        message: message.to_owned(),
        event_id: String::new(),
    }
}
