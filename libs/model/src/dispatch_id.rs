//! The ids of side effects: one per dispatch and one per timer, which makes each effect idempotent.
//!
//! Rows and logs hold the readable id. Queues allow fewer characters and spread hashed names
//! better, so a queue knows the effect by its [`QueueId`], which is stored next to the readable id.

use std::fmt;
use std::str::FromStr;

use crate::hash::{Base32Prefix, Digest};
use crate::ids::{AttemptId, IdError, RunId};
use crate::task_key::TaskKey;
use crate::text::written_as_text;

/// `dispatch:{run}:{task_key}:{attempt}`. `attempt` counts the dispatches of the task, from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DispatchId(String);

impl DispatchId {
    pub fn new(run: &RunId, task: &TaskKey, attempt: u32) -> DispatchId {
        DispatchId(format!("dispatch:{run}:{task}:{attempt}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn attempt_id(&self) -> AttemptId {
        AttemptId::of(self)
    }

    pub fn queue_id(&self) -> QueueId {
        QueueId::of(QueueKind::Dispatch, &self.0)
    }
}

impl AttemptId {
    pub fn of(dispatch: &DispatchId) -> AttemptId {
        AttemptId::from_bytes(Digest::of(dispatch.as_str()).first_half())
    }
}

impl fmt::Display for DispatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The purpose of a timer that concerns one attempt of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskTimer {
    /// The next attempt may start.
    Retry,
    /// No worker has started the attempt in time.
    DispatchAck,
    Heartbeat,
    /// The attempt has run for as long as its asset allows.
    Execution,
}

impl TaskTimer {
    pub const fn name(self) -> &'static str {
        match self {
            TaskTimer::Retry => "retry",
            TaskTimer::DispatchAck => "dispatch_ack",
            TaskTimer::Heartbeat => "heartbeat",
            TaskTimer::Execution => "execution",
        }
    }
}

/// `timer:{kind}:{run}:{task_key}:{attempt}:{due_second}`, or `timer:run:{run}:{due_second}` for a
/// run's duration. `due_second` is the Unix second at which the timer is due.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId(String);

impl TimerId {
    pub fn task(
        kind: TaskTimer,
        run: &RunId,
        task: &TaskKey,
        attempt: u32,
        due_second: i64,
    ) -> TimerId {
        TimerId(format!(
            "timer:{}:{run}:{task}:{attempt}:{due_second}",
            kind.name()
        ))
    }

    pub fn run(run: &RunId, due_second: i64) -> TimerId {
        TimerId(format!("timer:run:{run}:{due_second}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn queue_id(&self) -> QueueId {
        QueueId::of(QueueKind::Timer, &self.0)
    }
}

impl fmt::Display for TimerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueKind {
    Dispatch,
    Timer,
}

impl QueueKind {
    const fn prefix(self) -> &'static str {
        match self {
            QueueKind::Dispatch => "d_",
            QueueKind::Timer => "t_",
        }
    }
}

/// `d_` or `t_` and 26 base32 characters of the readable id's hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId {
    kind: QueueKind,
    hash: Base32Prefix,
}

impl QueueId {
    pub fn of(kind: QueueKind, internal_id: &str) -> QueueId {
        QueueId {
            kind,
            hash: Digest::of(internal_id).base32_prefix(),
        }
    }

    pub fn kind(&self) -> QueueKind {
        self.kind
    }
}

impl fmt::Display for QueueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.prefix(), self.hash)
    }
}

impl FromStr for QueueId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        [QueueKind::Dispatch, QueueKind::Timer]
            .into_iter()
            .find_map(|kind| {
                Some(QueueId {
                    kind,
                    hash: Base32Prefix::parse(text.strip_prefix(kind.prefix())?)?,
                })
            })
            .ok_or_else(|| {
                IdError::new(
                    "queue id",
                    text,
                    "write `d_` or `t_` and 26 characters of a-z and 2-7",
                )
            })
    }
}

written_as_text!(QueueId);

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunId {
        RunId::from_bytes([0; 16])
    }

    fn task() -> TaskKey {
        "raw/events[day=d:2025-01-01]:materialize".parse().unwrap()
    }

    #[test]
    fn internal_ids_are_readable() {
        let zeros = "run_aaaaaaaaaaaaaaaaaaaaaaaaaa";
        assert_eq!(
            DispatchId::new(&run(), &task(), 2).as_str(),
            format!("dispatch:{zeros}:raw/events[day=d:2025-01-01]:materialize:2")
        );
        assert_eq!(
            TimerId::task(TaskTimer::Retry, &run(), &task(), 2, 1_736_935_200).as_str(),
            format!("timer:retry:{zeros}:raw/events[day=d:2025-01-01]:materialize:2:1736935200")
        );
        assert_eq!(
            TimerId::run(&run(), 7).as_str(),
            format!("timer:run:{zeros}:7")
        );
    }

    #[test]
    fn queue_ids_round_trip_with_their_kind() {
        let dispatch = DispatchId::new(&run(), &task(), 1);
        let queued = dispatch.queue_id();
        assert_eq!(queued.to_string().parse(), Ok(queued));
        assert_ne!(queued, QueueId::of(QueueKind::Timer, dispatch.as_str()));
        for text in [
            "x_g2v2qqzw2axycr6g3n4s43cipq",
            "d_g2v2qqzw2axycr6g3n4s43cip",
            "d_G2v2qqzw2axycr6g3n4s43cipq",
            "",
        ] {
            assert!(text.parse::<QueueId>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_attempt_has_its_own_id() {
        let first = DispatchId::new(&run(), &task(), 1).attempt_id();
        assert_eq!(first, DispatchId::new(&run(), &task(), 1).attempt_id());
        assert_ne!(first, DispatchId::new(&run(), &task(), 2).attempt_id());
        assert_eq!(first.to_string().parse(), Ok(first));
        // sha256 of the dispatch id, truncated to 16 bytes: computed with coreutils' sha256sum.
        assert_eq!(
            data_encoding::HEXLOWER.encode(first.as_bytes()),
            "c4afa175143d437e1d5b71ebd3d5bbab"
        );
    }
}
