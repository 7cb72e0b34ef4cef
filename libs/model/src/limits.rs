//! All limits, by name. Unit and qualifier come last; the compiler checks how they relate.
//!
//! Limits that several services must agree on are defined here; intervals and pool sizes are
//! configuration.

use std::time::Duration;

// Plans and runs.
pub const TASKS_PER_RUN_MAX: usize = 50_000;
pub const EDGES_PER_PLAN_MAX: usize = 500_000;
pub const MAPPED_ITEMS_PER_TASK_MAX: usize = 10_000;
/// The check results of one attempt.
pub const CHECKS_PER_ATTEMPT_MAX: usize = 1_000;

/// Partitions that all inputs of a plan name together.
pub const INPUT_KEYS_PER_PLAN_MAX: usize = 500_000;

// Deployments and their partitions.
pub const ASSETS_PER_MANIFEST_MAX: usize = 10_000;
pub const STATIC_VALUES_MAX: usize = 10_000;
/// Values of one dimension, or keys of one list, that one call may name.
pub const PARTITION_KEYS_PER_CALL_MAX: usize = 10_000;
/// The periods of one dimension that one call may count.
pub const PARTITION_VALUES_MAX: i64 = 1_000_000;
/// How far a window may be shifted, in upstream periods.
pub const WINDOW_PERIODS_MAX: i64 = 100_000;
pub const CONFIG_BYTES_MAX: usize = 64 * KIB;
/// The configuration of asset, handler and run together, because they share one envelope with
/// everything else in it.
pub const CONFIGS_PER_TASK_BYTES_MAX: usize = 48 * KIB;
pub const PLAN_ORDERS_PER_CALL_MAX: usize = 256;

// The ledger and messages between services.
pub const EVENTS_PER_BATCH_MAX: usize = 512;
/// Envelopes or outcomes in one message between services and workers.
pub const ENVELOPES_PER_MESSAGE_MAX: usize = 256;
/// The encoded body of an event; the ledger's table holds the same limit.
pub const EVENT_BYTES_MAX: usize = 64 * KIB;
/// The same for RunRequested, which lists partitions one by one.
pub const RUN_REQUEST_BYTES_MAX: usize = MIB;
/// The id that a caller gives to a mutation.
pub const REQUEST_ID_BYTES_MAX: usize = 128;
/// The comment that a caller gives with a call.
pub const COMMENT_BYTES_MAX: usize = 4 * KIB;
/// A signed envelope in total.
pub const ENVELOPE_BYTES_MAX: usize = 64 * KIB;
/// Larger resolved inputs are stored in a blob that the envelope refers to.
pub const ENVELOPE_INPUT_BYTES_MAX: usize = 48 * KIB;
/// A larger manifest is passed by URI.
pub const MANIFEST_INLINE_BYTES_MAX: usize = MIB;
/// One gRPC message. A sender of many small items limits its messages by bytes as well as by count.
pub const MESSAGE_BYTES_MAX: usize = 4 * MIB;

// Pages of lists.
pub const PAGE_SIZE_DEFAULT: usize = 20;
pub const PAGE_SIZE_MAX: usize = 100;

// Texts.
/// A tenant or workspace name is a DNS label.
pub const SLUG_BYTES_MAX: usize = 63;
/// Each part of an asset key, and each name of a partition dimension.
pub const NAME_BYTES_MAX: usize = 128;
pub const PARTITION_DIMENSIONS_MAX: usize = 8;
pub const PARTITION_KEY_BYTES_MAX: usize = 1024;
pub const RUN_KEY_BYTES_MAX: usize = 512;
pub const KEY_ID_BYTES_MAX: usize = 32;
pub const PRESIGNED_BYTES_MAX: usize = 1024;
/// For the secrets of ids and signatures.
pub const SECRET_BYTES_MIN: usize = 32;
pub const JSON_DEPTH_MAX: usize = 64;

// Durations that more than one service uses. Assets and configuration can override the first three.
pub const DISPATCH_ACK_TIMEOUT: Duration = Duration::from_secs(30);
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);
pub const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// How far clocks may differ before a signature counts as expired, unless configured otherwise.
pub const CLOCK_SKEW_MAX: Duration = Duration::from_secs(60);
/// The longest duration that a manifest may declare: longer than any task takes, and short enough
/// that sums of durations do not overflow.
pub const MANIFEST_TIME_MAX: Duration = Duration::from_secs(366 * 24 * HOUR_SECONDS);
/// How long after its deadline an attempt may still deliver an outcome that its worker had to
/// store.
pub const FINISH_SIGNATURE_GRACE: Duration = Duration::from_secs(24 * HOUR_SECONDS);
pub const REQUEST_IDEMPOTENCY_TTL: Duration = Duration::from_secs(24 * HOUR_SECONDS);
pub const EVENT_IDEMPOTENCY_TTL: Duration = Duration::from_secs(7 * 24 * HOUR_SECONDS);

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
const HOUR_SECONDS: u64 = 3600;

const _: () = assert!(
    TASKS_PER_RUN_MAX <= u32::MAX as usize,
    "a plan's ordinals are u32"
);
const _: () = assert!(MAPPED_ITEMS_PER_TASK_MAX <= TASKS_PER_RUN_MAX);
const _: () = assert!(
    CHECKS_PER_ATTEMPT_MAX <= i16::MAX as usize,
    "rows number them by i16"
);
const _: () = assert!(EVENTS_PER_BATCH_MAX <= TASKS_PER_RUN_MAX);
const _: () = assert!(
    ENVELOPES_PER_MESSAGE_MAX <= EVENTS_PER_BATCH_MAX,
    "one message's outcomes fit one batch"
);
const _: () = assert!(ENVELOPE_INPUT_BYTES_MAX < ENVELOPE_BYTES_MAX);
const _: () = assert!(CONFIGS_PER_TASK_BYTES_MAX < ENVELOPE_BYTES_MAX);
const _: () =
    assert!(ENVELOPE_BYTES_MAX < MESSAGE_BYTES_MAX && EVENT_BYTES_MAX < MESSAGE_BYTES_MAX);
const _: () =
    assert!(EVENT_BYTES_MAX < RUN_REQUEST_BYTES_MAX && RUN_REQUEST_BYTES_MAX < MESSAGE_BYTES_MAX);
const _: () =
    assert!(2 * CONFIG_BYTES_MAX < RUN_REQUEST_BYTES_MAX && COMMENT_BYTES_MAX < EVENT_BYTES_MAX);
const _: () = assert!(MANIFEST_INLINE_BYTES_MAX < MESSAGE_BYTES_MAX);
const _: () = assert!(PAGE_SIZE_DEFAULT <= PAGE_SIZE_MAX);
const _: () = assert!(
    PARTITION_KEY_BYTES_MAX + 3 * NAME_BYTES_MAX < 2704,
    "a task key fits a Postgres index row"
);
const _: () = assert!(
    2 * HEARTBEAT_INTERVAL.as_secs() < HEARTBEAT_TIMEOUT.as_secs(),
    "one lost heartbeat does not time an attempt out"
);
const _: () = assert!(CLOCK_SKEW_MAX.as_secs() < HEARTBEAT_TIMEOUT.as_secs());
const _: () = assert!(REQUEST_IDEMPOTENCY_TTL.as_secs() <= EVENT_IDEMPOTENCY_TTL.as_secs());
