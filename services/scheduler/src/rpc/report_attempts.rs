//! ReportAttempts: starts and outcomes that the callback service forwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_mesh::{Error, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::{AttemptId, RunId};
use servo_proto::v1 as pb;
use servo_proto::v1::attempt_report::Report;
use servo_proto::v1::event::Body;
use ulid::Ulid;
use uuid::Uuid;

use super::Scheduler;
use super::support::verdicts::{self, refused_attempt};
use crate::shards::{Command, RunEvent};

const REPORTS_MAX: usize = 256;

pub(super) async fn report_attempts(
    scheduler: &Scheduler,
    request: pb::ReportAttemptsRequest,
) -> Result<pb::ReportAttemptsResponse, Error> {
    if request.reports.len() > REPORTS_MAX {
        let count = request.reports.len();
        return Err(Error::bad_field(
            "reports",
            format!("has {count} entries; {REPORTS_MAX} are allowed"),
        ));
    }
    let judged: Vec<Result<Command, pb::AttemptVerdict>> = request
        .reports
        .into_iter()
        .map(|report| command(report).map_err(|why| *why))
        .collect();
    let mut by_shard: BTreeMap<i16, Vec<(usize, Command)>> = BTreeMap::new();
    for (index, command) in judged.iter().enumerate() {
        if let Ok(command) = command {
            by_shard
                .entry(command.run_id().shard())
                .or_default()
                .push((index, command.clone()));
        }
    }
    let submitted = by_shard.into_iter().map(|(shard, commands)| async move {
        let (indexes, commands): (Vec<usize>, Vec<Command>) = commands.into_iter().unzip();
        (indexes, scheduler.shards.submit(shard, commands).await)
    });
    let lost = || refused_attempt(Reason::Internal, "the lane did not answer");
    let mut answers: Vec<pb::AttemptVerdict> = judged
        .into_iter()
        .map(|command| command.map_or_else(|refusal| refusal, |_| lost()))
        .collect();
    for (indexes, done) in futures::future::join_all(submitted).await {
        match done {
            Ok(done) => indexes
                .into_iter()
                .zip(done)
                .for_each(|(index, applied)| answers[index] = verdicts::attempt_verdict(applied)),
            Err(error) => {
                let error = verdicts::submit_error(&error);
                indexes.into_iter().for_each(|index| {
                    answers[index] = refused_attempt(error.reason(), &error.to_string())
                });
            }
        }
    }
    Ok(pb::ReportAttemptsResponse { verdicts: answers })
}

fn command(report: pb::AttemptReport) -> Result<Command, Box<pb::AttemptVerdict>> {
    let bad = |what: &str| Box::new(refused_attempt(Reason::InvalidField, what));
    let event_id: Ulid = report
        .event_id
        .parse()
        .map_err(|_| bad("event_id is not a ULID"))?;
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
    Ok(Command::Event(Arc::new(RunEvent {
        tenant: report.tenant,
        run_id,
        event_id: Uuid::from_u128(event_id.into()),
        idempotency_key: key.to_string(),
        body,
        trace: report.trace,
    })))
}
