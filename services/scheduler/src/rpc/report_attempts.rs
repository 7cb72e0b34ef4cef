//! ReportAttempts: starts and outcomes that the callback service forwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_mesh::{Error, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::{AttemptId, RunId, ShardId, TenantId};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::attempt_report::Report;
use servo_proto::v1::event::Body;
use ulid::Ulid;
use uuid::Uuid;

use super::Scheduler;
use super::support::verdicts::{self, refused_attempt};
use crate::shards::{Command, RunEvent};

const REPORTS_MAX: usize = 256;

pub(super) async fn report_attempts(
    scheduler: &Scheduler,
    request: mesh_pb::ReportAttemptsRequest,
) -> Result<mesh_pb::ReportAttemptsResponse, Error> {
    if request.reports.len() > REPORTS_MAX {
        let count = request.reports.len();
        return Err(Error::bad_field(
            "reports",
            format!("has {count} entries; {REPORTS_MAX} are allowed"),
        ));
    }
    let judged: Vec<Result<Command, mesh_pb::AttemptVerdict>> = request
        .reports
        .into_iter()
        .map(|report| command(report).map_err(|why| *why))
        .collect();
    let mut by_shard: BTreeMap<ShardId, Vec<(usize, Command)>> = BTreeMap::new();
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
    let mut answers: Vec<mesh_pb::AttemptVerdict> = judged
        .into_iter()
        .map(|command| command.map_or_else(|refusal| refusal, |_| lost()))
        .collect();
    for (indexes, result) in futures::future::join_all(submitted).await {
        match result {
            Ok(applied) => indexes
                .into_iter()
                .zip(applied)
                .for_each(|(index, applied)| answers[index] = verdicts::attempt_verdict(applied)),
            Err(error) => {
                let error = verdicts::submit_error(&error);
                indexes.into_iter().for_each(|index| {
                    answers[index] = refused_attempt(error.reason(), &error.to_string())
                });
            }
        }
    }
    Ok(mesh_pb::ReportAttemptsResponse { verdicts: answers })
}

fn command(report: mesh_pb::AttemptReport) -> Result<Command, Box<mesh_pb::AttemptVerdict>> {
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
    let tenant: TenantId = (report.tenant)
        .parse()
        .map_err(|_| bad("tenant is malformed"))?;
    Ok(Command::Event(Arc::new(RunEvent {
        tenant,
        run_id,
        event_id: Uuid::from_u128(event_id.into()),
        idempotency_key: key.to_string(),
        body,
        // Without the trace of the call: the callback appends the same event without one when the
        // answer is lost, and the ledger accepts a repeated event only with the same payload.
        trace: None,
    })))
}

#[cfg(test)]
mod tests {
    use servo_local::TestDatabase;
    use servo_store::AppendResult;

    use super::*;
    use crate::shards::tests::{
        apply, assert_folded, claim, finished, instance, new_run, plan, record_finish, run_id,
    };

    #[tokio::test]
    async fn a_folded_report_that_the_callback_appends_again_is_a_duplicate() {
        let database = TestDatabase::create().await.unwrap();
        let one = instance(&database, "one").await;
        let (plan, id) = (plan(&[&[]]), run_id(5));
        assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
        assert_folded(&apply(&one, claim(id, 0, 1, 1)).await);
        let report = mesh_pb::AttemptReport {
            tenant: "acme".to_owned(),
            workspace: "prod".to_owned(),
            event_id: Ulid::generate().to_string(),
            report: Some(Report::Finished(finished(id, 0, 1))),
        };
        let command = command(report).unwrap();
        let event_id = command.event_id();
        assert_folded(&apply(&one, command).await);
        assert_eq!(
            record_finish(&database, id).await,
            AppendResult::Duplicate { event_id }
        );
    }
}
