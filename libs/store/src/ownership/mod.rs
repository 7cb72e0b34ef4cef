//! Access rights to the database as one table: grants, policies, `docs/ownership.md` and the matrix
//! test are derived from it.
//!
//! Each service owns the schema of its name: both its roles select, insert, update and delete there
//! and nowhere else. [`READS`] lists what it may read in other schemas, column by column. No login
//! role owns `bus`, `ledger` and `store`: only the functions in [`FUNCTIONS`] and the migration
//! change their rows.

mod page;

use std::time::Duration;

use servo_model::{EventType, Service, Stream};

pub use page::markdown;

/// Timeouts of the login roles. All are shorter than the shortest lease, so that the open
/// transaction of a stopped process ends before its lease, and they are set on the role, so that
/// they also apply behind a transaction pooler.
pub mod timeouts {
    use super::Duration;

    pub const STATEMENT_MAX: Duration = Duration::from_millis(2_500);
    pub const LOCK_MAX: Duration = Duration::from_millis(2_000);
    pub const IDLE_IN_TRANSACTION_MAX: Duration = Duration::from_millis(2_000);
    /// Dropping a day or expiring keys may take longer and holds no lease.
    pub const RETENTION_STATEMENT_MAX: Duration = Duration::from_secs(60);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// For a service's request handlers; sees the tenant that `servo.tenant` names.
    Requests(Service),
    /// For a service's loops; sees all tenants.
    Loops(Service),
    /// Creates and drops the ledger's partitions and expires its keys, only through functions.
    Retention,
    /// The group of all request roles, named by row security policies. Not a login role.
    AllRequests,
    /// The group of all loop roles, named by row security policies. Not a login role.
    AllLoops,
    /// The role that the ledger's functions run as. Not a login role.
    Definer,
    /// Owns every schema and table. Not a login role.
    Owner,
}

impl Role {
    /// Every role, groups before their members.
    pub fn all() -> Vec<Role> {
        let mut roles = vec![
            Role::Owner,
            Role::Definer,
            Role::AllRequests,
            Role::AllLoops,
        ];
        roles.extend(Role::logins());
        roles
    }

    /// Every login role.
    pub fn logins() -> Vec<Role> {
        let both =
            storing_services().flat_map(|service| [Role::Requests(service), Role::Loops(service)]);
        both.chain([Role::Retention]).collect()
    }

    pub fn name(self) -> String {
        match self {
            Role::Requests(service) => format!("servo_{service}"),
            Role::Loops(service) => format!("servo_{service}_loop"),
            Role::Retention => "servo_retention".to_owned(),
            Role::AllRequests => "servo_requests".to_owned(),
            Role::AllLoops => "servo_loops".to_owned(),
            Role::Definer => "servo_definer".to_owned(),
            Role::Owner => "servo_owner".to_owned(),
        }
    }

    pub fn can_log_in(self) -> bool {
        matches!(self, Role::Requests(_) | Role::Loops(_) | Role::Retention)
    }

    /// The group whose row security applies to this role.
    pub fn group(self) -> Option<Role> {
        match self {
            Role::Requests(_) => Some(Role::AllRequests),
            Role::Loops(_) => Some(Role::AllLoops),
            _ => None,
        }
    }
}

/// The schemas that no login role owns.
pub const SHARED_SCHEMAS: [&str; 3] = ["bus", "ledger", "store"];

pub fn storing_services() -> impl Iterator<Item = Service> {
    Service::ALL
        .into_iter()
        .filter(|service| service.has_store())
}

pub fn schemas() -> Vec<&'static str> {
    SHARED_SCHEMAS
        .into_iter()
        .chain(storing_services().map(Service::name))
        .collect()
}

/// The reader of another service's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// Both roles of every service.
    Everyone,
    Both(Service),
    Requests(Service),
    Loops(Service),
}

impl Reader {
    pub fn roles(self) -> Vec<Role> {
        match self {
            Reader::Everyone => storing_services()
                .flat_map(|s| Reader::Both(s).roles())
                .collect(),
            Reader::Both(service) => vec![Role::Requests(service), Role::Loops(service)],
            Reader::Requests(service) => vec![Role::Requests(service)],
            Reader::Loops(service) => vec![Role::Loops(service)],
        }
    }
}

/// A permission to read columns of another service's table, with its reason.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    pub reader: Reader,
    pub table: &'static str,
    pub columns: &'static [&'static str],
    pub why: &'static str,
}

const EVENT_COLUMNS: &[&str] = &[
    "stream",
    "shard",
    "type",
    "version",
    "position",
    "recorded_at",
    "event_id",
    "correlation_id",
    "causation_id",
    "tenant",
    "workspace",
    "source",
    "idempotency_key",
    "payload",
];

const fn fold(reader: Reader, why: &'static str) -> Read {
    Read {
        reader,
        table: "ledger.events",
        columns: EVENT_COLUMNS,
        why,
    }
}

/// Every read across schemas. All other access is by RPC.
pub const READS: &[Read] = &[
    Read {
        reader: Reader::Everyone,
        table: "store.migrations",
        columns: &["number", "checksum"],
        why: "to check that the schema matches this binary",
    },
    Read {
        reader: Reader::Everyone,
        table: "ledger.shards",
        columns: &[
            "stream",
            "shard",
            "head",
            "recorded_at",
            "epoch",
            "watermark",
            "lease_until",
            "holder",
            "address",
        ],
        why: "to find a shard's holder and how far it has folded",
    },
    fold(
        Reader::Both(Service::Scheduler),
        "loops fold runs; handlers stream a run's events to its tenant",
    ),
    Read {
        reader: Reader::Loops(Service::Scheduler),
        table: "ledger.keys",
        columns: &[
            "hash",
            "event_id",
            "position",
            "recorded_at",
            "stream",
            "shard",
        ],
        why: "to check whether an awaited event is folded, and whether a call is a repeat",
    },
    fold(Reader::Loops(Service::Planner), "rebuilds deployments"),
    fold(
        Reader::Loops(Service::Dispatcher),
        "folds pauses and worker commands",
    ),
    fold(
        Reader::Loops(Service::Automation),
        "rebuilds schedules, sensors and ticks",
    ),
    fold(
        Reader::Loops(Service::Backfill),
        "rebuilds backfills and chunks",
    ),
    fold(
        Reader::Loops(Service::Quota),
        "rebuilds quotas and counts usage",
    ),
    Read {
        reader: Reader::Loops(Service::Scheduler),
        table: "bus.cursors",
        columns: &["subscription", "topic"],
        why: "no doorbell is rung for topics without a subscription",
    },
    Read {
        reader: Reader::Loops(Service::Scheduler),
        table: "bus.parked",
        columns: &[
            "subscription",
            "topic",
            "shard",
            "position",
            "place",
            "tenant",
            "error",
            "tries",
            "due_at",
            "failed_at",
            "payload",
        ],
        why: "operators list messages that consumers could not process",
    },
    Read {
        reader: Reader::Loops(Service::Scheduler),
        table: "planner.plans",
        columns: &["tenant", "workspace", "plan_id", "plan"],
        why: "a fold takes a run's tasks from its plan",
    },
    Read {
        reader: Reader::Loops(Service::Scheduler),
        table: "callback.heartbeats",
        columns: &[
            "attempt_id",
            "tenant",
            "beat_at",
            "progress_ppm",
            "progress_message",
        ],
        why: "the last heartbeat decides liveness and carries the attempt's progress",
    },
    Read {
        reader: Reader::Loops(Service::Scheduler),
        table: "callback.instances",
        columns: &["address", "healthy_since", "good_until"],
        why: "an attempt is lost only if heartbeats could be delivered for a full heartbeat timeout",
    },
    Read {
        reader: Reader::Requests(Service::Callback),
        table: "scheduler.runs",
        columns: &[
            "run_id",
            "run_number",
            "tenant",
            "workspace",
            "plan_id",
            "ended_at",
        ],
        why: "logs belong to a run and are followed until it ends",
    },
    Read {
        reader: Reader::Requests(Service::Callback),
        table: "scheduler.tasks",
        columns: &[
            "run_number",
            "ordinal",
            "item",
            "tenant",
            "state",
            "attempt",
            "attempt_id",
        ],
        why: "log lines name their task",
    },
    Read {
        reader: Reader::Requests(Service::Callback),
        table: "planner.plans",
        columns: &["tenant", "workspace", "plan_id", "plan"],
        why: "attempts are named after the tasks of the plan",
    },
    Read {
        reader: Reader::Loops(Service::Callback),
        table: "scheduler.runs",
        columns: &["run_id", "run_number", "tenant"],
        why: "the response to a heartbeat says whether its attempt is still current",
    },
    Read {
        reader: Reader::Loops(Service::Callback),
        table: "scheduler.tasks",
        columns: &[
            "run_number",
            "ordinal",
            "item",
            "tenant",
            "state",
            "attempt_id",
            "cancelling",
        ],
        why: "the response to a heartbeat says whether its attempt is still current",
    },
    Read {
        reader: Reader::Loops(Service::Dispatcher),
        table: "planner.plans",
        columns: &["tenant", "workspace", "plan_id", "plan"],
        why: "an envelope contains the task's part of the plan",
    },
    Read {
        reader: Reader::Both(Service::Planner),
        table: "scheduler.partitions",
        columns: &[
            "tenant",
            "workspace",
            "asset_key",
            "partition_key",
            "attempt_id",
            "attempt_state",
            "materialization_id",
            "materialized_at",
            "code_version",
        ],
        why: "a plan may skip up-to-date partitions or select partitions by state",
    },
    Read {
        reader: Reader::Both(Service::Planner),
        table: "scheduler.materializations",
        columns: &[
            "tenant",
            "workspace",
            "attempt_id",
            "asset_key",
            "partition_key",
            "state",
            "recorded_at",
            "promoted_at",
        ],
        why: "data is stale when a dependency has a newer promoted version",
    },
    Read {
        reader: Reader::Loops(Service::Dispatcher),
        table: "scheduler.partitions",
        columns: &[
            "tenant",
            "workspace",
            "asset_key",
            "partition_key",
            "materialization_id",
        ],
        why: "an envelope contains the versions that its task reads",
    },
    Read {
        reader: Reader::Loops(Service::Dispatcher),
        table: "scheduler.materializations",
        columns: &[
            "tenant",
            "attempt_id",
            "asset_key",
            "state",
            "output",
            "run_number",
            "ordinal",
            "item",
        ],
        why: "an envelope contains the versions that its task reads",
    },
    Read {
        reader: Reader::Loops(Service::Dispatcher),
        table: "scheduler.tasks",
        columns: &["tenant", "run_number", "ordinal", "item", "attempt_id"],
        why: "a version of a mapped asset consists of the outputs of all its children",
    },
    Read {
        reader: Reader::Loops(Service::Quota),
        table: "scheduler.runs",
        columns: &["run_id", "tenant", "workspace", "plan_id"],
        why: "usage is counted by asset and pool, which the run's plan names",
    },
    Read {
        reader: Reader::Loops(Service::Quota),
        table: "planner.plans",
        columns: &["tenant", "workspace", "plan_id", "plan"],
        why: "usage is counted by asset and pool, which the run's plan names",
    },
    Read {
        reader: Reader::Requests(Service::Quota),
        table: "planner.current",
        columns: &["tenant", "workspace", "digest"],
        why: "a pool that an active deployment uses cannot be deleted",
    },
    Read {
        reader: Reader::Requests(Service::Quota),
        table: "planner.manifests",
        columns: &["tenant", "workspace", "digest", "manifest"],
        why: "a pool that an active deployment uses cannot be deleted",
    },
];

/// The roles that may call a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Both roles of every service that appends some event type.
    Writers,
    /// The loop role of every service that owns a stream.
    Lessees,
    One(Role),
}

impl Caller {
    pub fn roles(self) -> Vec<Role> {
        match self {
            Caller::Writers => storing_services()
                .filter(|service| {
                    EventType::ALL
                        .iter()
                        .any(|kind| kind.writers().contains(service))
                })
                .flat_map(|service| Reader::Both(service).roles())
                .collect(),
            Caller::Lessees => Stream::ALL
                .map(|stream| Role::Loops(stream.owner()))
                .to_vec(),
            Caller::One(role) => vec![role],
        }
    }
}

/// A function that runs with the rights of another role, and its callers.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    pub name: &'static str,
    pub runs_as: Role,
    pub callers: &'static [Caller],
    pub does: &'static str,
}

const fn function(
    name: &'static str,
    runs_as: Role,
    callers: &'static [Caller],
    does: &'static str,
) -> Function {
    Function {
        name,
        runs_as,
        callers,
        does,
    }
}

const RETENTION: &[Caller] = &[Caller::One(Role::Retention)];
const LESSEES: &[Caller] = &[Caller::Lessees];

/// Every function of the schemas. Functions without callers are called by other functions.
pub const FUNCTIONS: &[Function] = &[
    function(
        "ledger.append",
        Role::Definer,
        &[Caller::Writers],
        "appends events of the types the caller may write",
    ),
    function(
        "ledger.store",
        Role::Definer,
        &[],
        "numbers and stores the events that append accepted",
    ),
    function(
        "ledger.hash_key",
        Role::Definer,
        &[],
        "hashes (tenant, workspace, idempotency key)",
    ),
    function(
        "ledger.hash_body",
        Role::Definer,
        &[],
        "hashes the fields in which equal events agree",
    ),
    function(
        "ledger.check_append",
        Role::Definer,
        &[],
        "refuses events that the caller may not append",
    ),
    function(
        "ledger.acquire",
        Role::Definer,
        LESSEES,
        "acquires free shards of the caller's stream",
    ),
    function(
        "ledger.renew",
        Role::Definer,
        LESSEES,
        "extends leases that are still held",
    ),
    function("ledger.release", Role::Definer, LESSEES, "releases a lease"),
    function(
        "ledger.note_instance",
        Role::Definer,
        LESSEES,
        "records that an instance is alive and counts the live ones",
    ),
    function(
        "ledger.forget_instance",
        Role::Definer,
        LESSEES,
        "removes an instance that is shutting down",
    ),
    function(
        "ledger.fence",
        Role::Definer,
        LESSEES,
        "verifies a lease and moves its shard's watermark",
    ),
    function(
        "ledger.append_held",
        Role::Definer,
        LESSEES,
        "appends events that the holder has folded, and moves the watermarks",
    ),
    function(
        "ledger.rewind",
        Role::Definer,
        &[Caller::One(Role::Loops(Service::Scheduler))],
        "moves a held shard's watermark back to its first retained event, for a rebuild",
    ),
    function(
        "ledger.refuse_append_held",
        Role::Definer,
        &[],
        "reports why a watermark did not move",
    ),
    function(
        "ledger.check_lessee",
        Role::Definer,
        &[],
        "refuses roles that may not lease the stream",
    ),
    function(
        "ledger.make_partitions",
        Role::Owner,
        &[
            Caller::One(Role::Retention),
            Caller::One(Role::Loops(Service::Scheduler)),
        ],
        "creates the partitions of the days ahead",
    ),
    function(
        "ledger.partition_of",
        Role::Owner,
        &[],
        "names a day's partition",
    ),
    function(
        "ledger.note_archived",
        Role::Owner,
        RETENTION,
        "records that a day is archived",
    ),
    function(
        "ledger.drop_partition",
        Role::Owner,
        RETENTION,
        "drops a day that is archived and folded",
    ),
    function(
        "ledger.expire_keys",
        Role::Owner,
        &[
            Caller::One(Role::Retention),
            Caller::One(Role::Loops(Service::Scheduler)),
        ],
        "deletes idempotency keys older than seven days",
    ),
    function(
        "ledger.note_start",
        Role::Definer,
        &[Caller::One(Role::Loops(Service::Scheduler))],
        "records the start of Postgres and returns all known starts",
    ),
    function(
        "bus.publish",
        Role::Definer,
        &[Caller::One(Role::Loops(Service::Scheduler))],
        "stores messages in the transaction of the change that they report",
    ),
    function(
        "bus.check_subscriber",
        Role::Definer,
        &[],
        "refuses to read another service's subscription",
    ),
    function(
        "bus.subscribe",
        Role::Definer,
        LESSEES,
        "creates a subscription of the caller's service",
    ),
    function(
        "bus.claim",
        Role::Definer,
        LESSEES,
        "claims messages for a consumer",
    ),
    function(
        "bus.settle",
        Role::Definer,
        LESSEES,
        "records the results of a consumer's messages",
    ),
    function(
        "bus.next_due",
        Role::Definer,
        LESSEES,
        "returns when the next message is to be retried",
    ),
    function(
        "bus.replay",
        Role::Definer,
        &[Caller::One(Role::Loops(Service::Scheduler))],
        "schedules a message that was set aside for another try",
    ),
    function(
        "bus.expire",
        Role::Definer,
        &[Caller::One(Role::Loops(Service::Scheduler))],
        "deletes old messages that every subscription has passed",
    ),
    function(
        "scheduler.resolve",
        Role::Owner,
        &[Caller::One(Role::Loops(Service::Scheduler))],
        "runs as its caller: stores approvals and rejections of quarantined versions",
    ),
];

/// The privileges of the ledger's functions: they cannot change or delete an event.
pub const DEFINER_GRANTS: &[(&str, &str)] = &[
    ("ledger.events", "SELECT, INSERT"),
    ("ledger.keys", "SELECT, INSERT"),
    ("ledger.shards", "SELECT, UPDATE"),
    ("ledger.writers", "SELECT"),
    ("ledger.lessees", "SELECT"),
    ("ledger.instances", "SELECT, INSERT, UPDATE, DELETE"),
    ("ledger.starts", "SELECT, INSERT"),
    ("bus.messages", "SELECT, INSERT, DELETE"),
    ("bus.cursors", "SELECT, INSERT, UPDATE"),
    ("bus.parked", "SELECT, INSERT, UPDATE, DELETE"),
];

/// Whether `role` may insert into, update and delete from `table` (`schema.name`), and select all
/// of it.
pub fn owns(role: Role, table: &str) -> bool {
    let schema = table.split('.').next();
    matches!(role, Role::Requests(service) | Role::Loops(service) if schema == Some(service.name()))
}

/// Whether `role` may select `column` of `table`.
pub fn reads(role: Role, table: &str, column: &str) -> bool {
    let granted = |read: &&Read| read.table == table && read.columns.contains(&column);
    owns(role, table)
        || READS
            .iter()
            .filter(granted)
            .any(|read| read.reader.roles().contains(&role))
}

/// Whether `role` may call `function`.
pub fn calls(role: Role, function: &Function) -> bool {
    function
        .callers
        .iter()
        .any(|caller| caller.roles().contains(&role))
}
