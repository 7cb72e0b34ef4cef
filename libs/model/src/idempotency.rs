//! The idempotency keys of ledger events, one function per kind of event.
//!
//! A key is unique per tenant and workspace. Appending a different body under the same key is
//! reported as a conflict, which is how two writers of the same version detect each other.

use std::fmt;

use crate::dispatch_id::TimerId;
use crate::hash::Digest;
use crate::ids::{AttemptId, BackfillId, DeploymentId, RunId, ScheduleId, SensorId, WorkerId};
use crate::request::RequestFingerprint;
use crate::run_key::RunKey;
use crate::task_key::TaskKey;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// RunRequested. The key contains the fingerprint, so that a different request under the same
    /// run key reaches the fold, which records the conflict.
    pub fn run_requested(key: &RunKey, request: &RequestFingerprint) -> IdempotencyKey {
        IdempotencyKey(format!("runreq:{key}:{request}"))
    }

    pub fn plan_created(run: &RunId, request: &RequestFingerprint) -> IdempotencyKey {
        IdempotencyKey(format!("plan:{run}:{request}"))
    }

    pub fn plan_failed(run: &RunId, request: &RequestFingerprint) -> IdempotencyKey {
        IdempotencyKey(format!("planfail:{run}:{request}"))
    }

    /// DispatchRequested: equal to the dispatch id, because the append is the claim.
    pub fn dispatch_requested(run: &RunId, task: &TaskKey, attempt: u32) -> IdempotencyKey {
        IdempotencyKey(format!("dispatch:{run}:{task}:{attempt}"))
    }

    pub fn dispatch_enqueued(run: &RunId, task: &TaskKey, attempt: u32) -> IdempotencyKey {
        IdempotencyKey(format!("enqueued:{run}:{task}:{attempt}"))
    }

    pub fn task_started(attempt: &AttemptId) -> IdempotencyKey {
        IdempotencyKey(format!("started:{attempt}"))
    }

    pub fn task_finished(attempt: &AttemptId) -> IdempotencyKey {
        IdempotencyKey(format!("finished:{attempt}"))
    }

    pub fn timer_fired(timer: &TimerId) -> IdempotencyKey {
        IdempotencyKey(format!("fired:{timer}"))
    }

    /// RunCancelRequested, RunPaused, RunResumed and TaskForceCancelled share the run's versions,
    /// so that only one of two concurrent events is accepted.
    pub fn run_control(run: &RunId, version: u64) -> IdempotencyKey {
        IdempotencyKey(format!("control:{run}:{version}"))
    }

    /// The same events for a call with a request id, so that a repeated call is found; the fold
    /// checks the versions.
    pub fn run_control_by(request_id: &str) -> IdempotencyKey {
        IdempotencyKey(format!("control_by:{request_id}"))
    }

    /// DispatchPaused and DispatchResumed of one pause, by its versions.
    pub fn dispatch_pause(pause: &str, version: u64) -> IdempotencyKey {
        IdempotencyKey(format!("dispatch_pause:{pause}:{version}"))
    }

    pub fn worker_commanded(worker: &WorkerId, version: u64) -> IdempotencyKey {
        IdempotencyKey(format!("worker:{worker}:{version}"))
    }

    pub fn schedule_defined(schedule: &ScheduleId, version: u64) -> IdempotencyKey {
        IdempotencyKey(format!("schedule:{schedule}:{version}"))
    }

    /// ScheduleTicked for a time of the schedule; `epoch` is the scheduled second.
    pub fn schedule_ticked(schedule: &ScheduleId, epoch: i64) -> IdempotencyKey {
        IdempotencyKey(format!("sched_tick:{schedule}:{epoch}"))
    }

    /// ScheduleTicked by a manual trigger, outside the schedule's times.
    pub fn schedule_ticked_manually(schedule: &ScheduleId, request_id: &str) -> IdempotencyKey {
        IdempotencyKey(format!("sched_tick:{schedule}:manual:{request_id}"))
    }

    pub fn sensor_defined(sensor: &SensorId, version: u64) -> IdempotencyKey {
        IdempotencyKey(format!("sensor:{sensor}:{version}"))
    }

    /// SensorEvaluated for a pushed message.
    pub fn sensor_message(sensor: &SensorId, message_id: &str) -> IdempotencyKey {
        IdempotencyKey(format!("sensor_eval:{sensor}:msg:{message_id}"))
    }

    /// SensorEvaluated for a poll. The cursor is hashed, because it may be long.
    pub fn sensor_poll(sensor: &SensorId, epoch: u64, cursor_before: &str) -> IdempotencyKey {
        IdempotencyKey(format!(
            "sensor_eval:{sensor}:poll:{epoch}:{}",
            Digest::of(cursor_before)
        ))
    }

    pub fn backfill_created(request_id: &str) -> IdempotencyKey {
        IdempotencyKey(format!("backfill:{request_id}"))
    }

    pub fn backfill_chunk(backfill: &BackfillId, chunk: u32) -> IdempotencyKey {
        IdempotencyKey(format!("backfill_chunk:{backfill}:{chunk}"))
    }

    pub fn backfill_state(backfill: &BackfillId, version: u64) -> IdempotencyKey {
        IdempotencyKey(format!("backfill_state:{backfill}:{version}"))
    }

    pub fn deployment_registered(deployment: &DeploymentId, version: u64) -> IdempotencyKey {
        IdempotencyKey(format!("deployment:{deployment}:{version}"))
    }

    pub fn dynamic_partitions_changed(set: &str, version: u64) -> IdempotencyKey {
        IdempotencyKey(format!("dynamic_partitions:{set}:{version}"))
    }

    /// QuotaChanged; the subject is the versioned object, such as a tenant's limits or one pool.
    pub fn quota_changed(subject: &str, version: u64) -> IdempotencyKey {
        IdempotencyKey(format!("quota:{subject}:{version}"))
    }

    /// QuarantineResolved; a materialization is identified by its attempt.
    pub fn quarantine_resolved(materialization: &AttemptId, version: u64) -> IdempotencyKey {
        IdempotencyKey(format!("quarantine:{materialization}:{version}"))
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::dispatch_id::{DispatchId, TaskTimer};
    use crate::event::EventType;

    const ULID: &str = "00000000000000000000000000";
    const RUN: &str = "run_aaaaaaaaaaaaaaaaaaaaaaaaaa";

    /// The key of an event whose ids are all zero. A new event type does not compile until it has a
    /// key.
    fn key_of(event: EventType) -> IdempotencyKey {
        let (run, attempt) = (RunId::from_bytes([0; 16]), AttemptId::from_bytes([0; 16]));
        let request = RequestFingerprint::from_digest(Digest::from_bytes([0; 32]));
        let task: TaskKey = "raw/a:check".parse().unwrap();
        match event {
            EventType::RunRequested => {
                IdempotencyKey::run_requested(&RunKey::chosen("k").unwrap(), &request)
            }
            EventType::PlanCreated => IdempotencyKey::plan_created(&run, &request),
            EventType::PlanFailed => IdempotencyKey::plan_failed(&run, &request),
            EventType::DispatchRequested => IdempotencyKey::dispatch_requested(&run, &task, 1),
            EventType::DispatchEnqueued => IdempotencyKey::dispatch_enqueued(&run, &task, 1),
            EventType::TaskStarted => IdempotencyKey::task_started(&attempt),
            EventType::TaskFinished => IdempotencyKey::task_finished(&attempt),
            EventType::TimerFired => {
                IdempotencyKey::timer_fired(&TimerId::task(TaskTimer::Retry, &run, &task, 1, 7))
            }
            EventType::RunCancelRequested
            | EventType::RunPaused
            | EventType::RunResumed
            | EventType::TaskForceCancelled => IdempotencyKey::run_control(&run, 3),
            EventType::DispatchPaused | EventType::DispatchResumed => {
                IdempotencyKey::dispatch_pause("p", 3)
            }
            EventType::WorkerCommanded => {
                IdempotencyKey::worker_commanded(&WorkerId::from_bytes([0; 16]), 3)
            }
            EventType::ScheduleDefined => {
                IdempotencyKey::schedule_defined(&ScheduleId::from_bytes([0; 16]), 3)
            }
            EventType::ScheduleTicked => {
                IdempotencyKey::schedule_ticked(&ScheduleId::from_bytes([0; 16]), 7)
            }
            EventType::SensorDefined => {
                IdempotencyKey::sensor_defined(&SensorId::from_bytes([0; 16]), 3)
            }
            EventType::SensorEvaluated => {
                IdempotencyKey::sensor_message(&SensorId::from_bytes([0; 16]), "m")
            }
            EventType::BackfillCreated => IdempotencyKey::backfill_created("r"),
            EventType::BackfillChunkPlanned => {
                IdempotencyKey::backfill_chunk(&BackfillId::from_bytes([0; 16]), 7)
            }
            EventType::BackfillStateChanged => {
                IdempotencyKey::backfill_state(&BackfillId::from_bytes([0; 16]), 3)
            }
            EventType::DeploymentRegistered => {
                IdempotencyKey::deployment_registered(&DeploymentId::from_bytes([0; 16]), 3)
            }
            EventType::DynamicPartitionsChanged => {
                IdempotencyKey::dynamic_partitions_changed("s", 3)
            }
            EventType::QuotaChanged => IdempotencyKey::quota_changed("limits", 3),
            EventType::QuarantineResolved => IdempotencyKey::quarantine_resolved(&attempt, 3),
        }
    }

    #[test]
    fn keys_look_as_designed() {
        let zeros = "0".repeat(64);
        let expected = [
            format!("runreq:k:{zeros}"),
            format!("plan:{RUN}:{zeros}"),
            format!("planfail:{RUN}:{zeros}"),
            format!("dispatch:{RUN}:raw/a:check:1"),
            format!("enqueued:{RUN}:raw/a:check:1"),
            format!("started:{ULID}"),
            format!("finished:{ULID}"),
            format!("fired:timer:retry:{RUN}:raw/a:check:1:7"),
            format!("control:{RUN}:3"),
            "dispatch_pause:p:3".to_owned(),
            format!("worker:{ULID}:3"),
            format!("schedule:{ULID}:3"),
            format!("sched_tick:{ULID}:7"),
            format!("sensor:{ULID}:3"),
            format!("sensor_eval:{ULID}:msg:m"),
            "backfill:r".to_owned(),
            format!("backfill_chunk:{ULID}:7"),
            format!("backfill_state:{ULID}:3"),
            format!("deployment:{ULID}:3"),
            "dynamic_partitions:s:3".to_owned(),
            "quota:limits:3".to_owned(),
            format!("quarantine:{ULID}:3"),
        ];
        let keys: BTreeSet<String> = EventType::ALL
            .iter()
            .map(|event| key_of(*event).to_string())
            .collect();
        assert_eq!(keys, BTreeSet::from(expected));
    }

    #[test]
    fn the_claim_is_the_dispatch() {
        let (run, task) = (
            RunId::from_bytes([1; 16]),
            "raw/a[day=d:2025-01-01]:check".parse().unwrap(),
        );
        let claim = IdempotencyKey::dispatch_requested(&run, &task, 4);
        assert_eq!(claim.as_str(), DispatchId::new(&run, &task, 4).as_str());
    }

    #[test]
    fn polls_differ_by_cursor_and_manual_ticks_by_request() {
        let sensor = SensorId::from_bytes([0; 16]);
        assert_eq!(
            IdempotencyKey::sensor_poll(&sensor, 5, "").as_str(),
            format!(
                "sensor_eval:{ULID}:poll:5:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
            )
        );
        assert_eq!(
            IdempotencyKey::schedule_ticked_manually(&ScheduleId::from_bytes([0; 16]), "r")
                .as_str(),
            format!("sched_tick:{ULID}:manual:r")
        );
    }
}
