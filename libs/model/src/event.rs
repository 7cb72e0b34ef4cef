//! The list of ledger events: the stream of each, and the services that may append it.
//!
//! The number of a type is the field number of its body in `servo.v1.Event`, and it is the number
//! that the ledger stores. Grants (`ledger.writers`), docs and the proto check are derived from
//! [`EventType::ALL`].

use crate::limits::{EVENT_BYTES_MAX, RUN_REQUEST_BYTES_MAX};
use crate::service::Service;

/// An independent sequence of events. Positions are dense per (stream, shard).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i16)]
pub enum Stream {
    /// Runs and their tasks, by run.
    Execution = 1,
    /// Schedules, sensors and their ticks.
    Automation = 2,
    Backfill = 3,
    /// Deployments.
    Catalog = 4,
    Quota = 5,
    /// Pauses and worker commands, by tenant; its shards are the dispatcher's admission shards.
    Dispatch = 6,
}

impl Stream {
    pub const ALL: [Stream; 6] = [
        Stream::Execution,
        Stream::Automation,
        Stream::Backfill,
        Stream::Catalog,
        Stream::Quota,
        Stream::Dispatch,
    ];

    pub const fn code(self) -> i16 {
        self as i16
    }

    pub fn from_code(code: i16) -> Option<Stream> {
        Stream::ALL.into_iter().find(|s| s.code() == code)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Stream::Execution => "execution",
            Stream::Automation => "automation",
            Stream::Backfill => "backfill",
            Stream::Catalog => "catalog",
            Stream::Quota => "quota",
            Stream::Dispatch => "dispatch",
        }
    }

    pub const fn shard_count(self) -> i16 {
        match self {
            Stream::Execution => 64,
            Stream::Dispatch => 16,
            Stream::Automation | Stream::Backfill | Stream::Catalog | Stream::Quota => 4,
        }
    }

    /// The service whose instances lease the shards of this stream and fold its events.
    pub const fn owner(self) -> Service {
        match self {
            Stream::Execution => Service::Scheduler,
            Stream::Automation => Service::Automation,
            Stream::Backfill => Service::Backfill,
            Stream::Catalog => Service::Planner,
            Stream::Quota => Service::Quota,
            Stream::Dispatch => Service::Dispatcher,
        }
    }
}

macro_rules! event_types {
    ($($name:ident = $code:literal, $stream:ident, [$($writer:ident),+];)+) => {
        /// The type of an event. The discriminant is the field number of the body in
        /// `servo.v1.Event`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum EventType { $($name = $code),+ }

        impl EventType {
            pub const ALL: &'static [EventType] = &[$(EventType::$name),+];

            /// The name of the body message in `servo.v1`.
            pub const fn name(self) -> &'static str {
                match self { $(EventType::$name => stringify!($name)),+ }
            }

            pub const fn stream(self) -> Stream {
                match self { $(EventType::$name => Stream::$stream),+ }
            }

            /// The services that may append it; the ledger rejects all others.
            pub const fn writers(self) -> &'static [Service] {
                match self { $(EventType::$name => &[$(Service::$writer),+]),+ }
            }
        }
    };
}

event_types! {
    RunRequested = 20, Execution, [Scheduler, Automation, Backfill];
    PlanCreated = 21, Execution, [Scheduler];
    PlanFailed = 22, Execution, [Scheduler];
    // The dispatcher chooses a task; the shard's holder appends and folds the claim in one
    // statement.
    DispatchRequested = 23, Execution, [Scheduler];
    DispatchEnqueued = 24, Execution, [Scheduler];
    // The callback forwards these to the shard's holder, which appends them; the callback appends
    // them itself when no holder responds.
    TaskStarted = 25, Execution, [Callback, Scheduler];
    TaskFinished = 26, Execution, [Callback, Scheduler];
    TimerFired = 27, Execution, [Scheduler];
    RunCancelRequested = 28, Execution, [Scheduler];
    RunPaused = 29, Execution, [Scheduler];
    RunResumed = 30, Execution, [Scheduler];
    TaskForceCancelled = 31, Execution, [Scheduler];
    QuarantineResolved = 32, Execution, [Scheduler];
    DispatchPaused = 40, Dispatch, [Dispatcher];
    DispatchResumed = 41, Dispatch, [Dispatcher];
    WorkerCommanded = 42, Dispatch, [Dispatcher];
    ScheduleDefined = 50, Automation, [Automation];
    ScheduleTicked = 51, Automation, [Automation];
    SensorDefined = 52, Automation, [Automation];
    SensorEvaluated = 53, Automation, [Automation];
    BackfillCreated = 60, Backfill, [Backfill];
    BackfillChunkPlanned = 61, Backfill, [Backfill];
    BackfillStateChanged = 62, Backfill, [Backfill];
    DeploymentRegistered = 70, Catalog, [Planner];
    DynamicPartitionsChanged = 71, Catalog, [Planner];
    QuotaChanged = 80, Quota, [Quota];
}

impl EventType {
    /// How large its encoded body may be; the ledger's table holds the same limits.
    pub const fn bytes_max(self) -> usize {
        match self {
            EventType::RunRequested => RUN_REQUEST_BYTES_MAX,
            _ => EVENT_BYTES_MAX,
        }
    }

    pub const fn code(self) -> i16 {
        self as i16
    }

    pub fn from_code(code: i16) -> Option<EventType> {
        EventType::ALL.iter().copied().find(|t| t.code() == code)
    }
}
