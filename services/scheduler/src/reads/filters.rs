//! The fields that lists can be filtered by, and the index that a filter allows to use.

use servo_mesh::filter::{Field, Filter, entry};
use servo_proto::v1 as pb;

use crate::store::checks::CheckIndex;
use crate::store::materializations::MaterializationIndex;
use crate::wire;

/// The trigger types by the names that a filter uses.
const TRIGGERS: [&str; 5] = ["manual", "schedule", "sensor", "backfill", "condition"];

pub(crate) static RUNS: [Field<pb::Run>; 7] = [
    Field::named(
        "state",
        "RUN_STATE_",
        |name| pb::RunState::from_str_name(name).map(i32::from),
        |run| run.state,
    ),
    Field::text("run_key", |run| &run.run_key),
    Field::map("labels", |run, key| entry(&run.spec.as_ref()?.labels, key)),
    Field::one_of("trigger", &TRIGGERS, |run| {
        wire::trigger_type(run.trigger.as_ref()).name()
    }),
    Field::text("deployment_id", |run| &run.deployment_id),
    Field::time("create_time", |run| run.create_time),
    Field::time("end_time", |run| run.end_time),
];

pub(crate) static TASKS: [Field<pb::Task>; 6] = [
    Field::named(
        "state",
        "TASK_STATE_",
        |name| pb::TaskState::from_str_name(name).map(i32::from),
        |task| task.state,
    ),
    Field::asset_key("asset_key", |task| &task.asset_key),
    Field::text("partition_key", |task| &task.partition_key),
    Field::named(
        "operation",
        "OPERATION_",
        |name| pb::Operation::from_str_name(name).map(i32::from),
        |task| task.operation,
    ),
    Field::text("pool", |task| &task.pool),
    Field::named(
        "reason",
        "TRANSITION_REASON_",
        |name| pb::TransitionReason::from_str_name(name).map(i32::from),
        |task| task.reason,
    ),
];

pub(crate) static PARTITIONS: [Field<pb::Partition>; 4] = [
    Field::named(
        "state",
        "PARTITION_STATE_",
        |name| pb::PartitionState::from_str_name(name).map(i32::from),
        |partition| partition.state,
    ),
    Field::text("partition_key", |partition| &partition.partition_key),
    Field::time("materialize_time", |partition| partition.materialize_time),
    Field::named(
        "last_attempt_outcome",
        "OUTCOME_",
        |name| pb::Outcome::from_str_name(name).map(i32::from),
        |partition| partition.last_attempt_outcome,
    ),
];

pub(crate) static MATERIALIZATIONS: [Field<pb::Materialization>; 6] = [
    Field::asset_key("asset_key", |version| {
        version
            .output
            .as_ref()
            .map_or("", |output| &output.asset_key)
    }),
    Field::text("partition_key", |version| {
        let output = version.output.as_ref();
        output.map_or("", |output| &output.partition_key)
    }),
    Field::named(
        "state",
        "MATERIALIZATION_STATE_",
        |name| pb::MaterializationState::from_str_name(name).map(i32::from),
        |version| version.state,
    ),
    Field::run_id("run_id", |version| &version.run_id),
    Field::named(
        "gating",
        "GATING_",
        |name| pb::Gating::from_str_name(name).map(i32::from),
        |version| version.gating,
    ),
    Field::time("record_time", |version| version.record_time),
];

pub(crate) static CHECKS: [Field<pb::CheckRecord>; 7] = [
    Field::asset_key("asset_key", |record| &record.asset_key),
    Field::text("partition_key", |record| &record.partition_key),
    Field::text("name", |record| {
        record.result.as_ref().map_or("", |result| &result.name)
    }),
    Field::flag("passed", |record| {
        record.result.as_ref().is_some_and(|result| result.passed)
    }),
    Field::named(
        "severity",
        "SEVERITY_",
        |name| pb::Severity::from_str_name(name).map(i32::from),
        |record| record.result.as_ref().map_or(0, |result| result.severity),
    ),
    Field::run_id("run_id", |record| &record.run_id),
    Field::time("record_time", |record| record.record_time),
];

/// The only state that can match, if the filter names one; the store then leaves out the others.
pub(crate) fn run_states(filter: &Filter<pb::Run>) -> Option<Vec<i16>> {
    let state = i16::try_from(filter.number("state")?).ok()?;
    Some(vec![state])
}

/// The most selective index: a run has fewer results than an asset, and few results failed.
pub(crate) fn check_index(filter: &Filter<pb::CheckRecord>) -> CheckIndex<'_> {
    let failed = || (filter.flag("passed") == Some(false)).then_some(CheckIndex::Failed);
    (filter.run_id("run_id").map(CheckIndex::Run))
        .or_else(|| filter.exact("asset_key").map(CheckIndex::Asset))
        .or_else(failed)
        .unwrap_or(CheckIndex::All)
}

/// The most selective index: a run has fewer versions than an asset, and few are quarantined.
pub(crate) fn materialization_index(
    filter: &Filter<pb::Materialization>,
) -> MaterializationIndex<'_> {
    let quarantined = pb::MaterializationState::Quarantined as i32;
    let waiting = || filter.number("state") == Some(quarantined);
    (filter.run_id("run_id").map(MaterializationIndex::Run))
        .or_else(|| waiting().then_some(MaterializationIndex::Quarantined))
        .or_else(|| filter.exact("asset_key").map(MaterializationIndex::Asset))
        .unwrap_or(MaterializationIndex::All)
}

#[cfg(test)]
mod tests {
    use servo_model::RunId;

    use super::*;

    const NEW_YEAR: Option<prost_types::Timestamp> = Some(prost_types::Timestamp {
        seconds: 1_767_225_600,
        nanos: 0,
    });

    fn run_id() -> RunId {
        RunId::from_bytes([5; 16])
    }

    /// Every field of a list, in a filter that the record matches and in one that it does not.
    fn check<R>(record: &R, fields: &'static [Field<R>], terms: &[(&str, &str)]) {
        for (matching, other) in terms {
            let matches = |filter: &str| {
                let filter = Filter::parse(filter, fields).unwrap_or_else(|e| panic!("{e}"));
                filter.matches(record)
            };
            assert!(matches(matching), "{matching}");
            assert!(!matches(other), "{other}");
        }
        assert_eq!(terms.len(), fields.len());
    }

    #[test]
    fn runs_are_filtered_by_each_field() {
        let spec = pb::RunSpec {
            labels: [("team".to_owned(), "core".to_owned())].into(),
            ..Default::default()
        };
        let run = pb::Run {
            run_key: "nightly".to_owned(),
            deployment_id: "d1".to_owned(),
            state: pb::RunState::Failed.into(),
            spec: Some(spec),
            create_time: NEW_YEAR,
            ..Default::default()
        };
        check(
            &run,
            &RUNS,
            &[
                ("state = run_state_failed", "state != FAILED"),
                ("run_key = nightly", "run_key = other"),
                ("labels.team = core", "labels.team != core"),
                ("trigger = manual", "trigger = sensor"),
                ("deployment_id = d1", "deployment_id = d2"),
                (
                    "create_time >= 2026-01-01T00:00:00Z",
                    "create_time > 2026-01-01T00:00:00Z",
                ),
                // A run that has not ended has no end time.
                ("state = FAILED", "end_time > 2020-01-01T00:00:00Z"),
            ],
        );
        let states = |filter: &str| run_states(&Filter::parse(filter, &RUNS).unwrap());
        assert_eq!(
            states("state = FAILED"),
            Some(vec![pb::RunState::Failed as i16])
        );
        assert_eq!(states("state != FAILED"), None);
    }

    #[test]
    fn tasks_are_filtered_by_each_field() {
        let task = pb::Task {
            state: pb::TaskState::Ready.into(),
            asset_key: "sales/orders".to_owned(),
            partition_key: "day=d:2026-01-01".to_owned(),
            operation: pb::Operation::Materialize.into(),
            pool: "db".to_owned(),
            reason: pb::TransitionReason::DependenciesSatisfied.into(),
            ..Default::default()
        };
        check(
            &task,
            &TASKS,
            &[
                ("state = READY", "state = FAILED"),
                ("asset_key = sales.orders", "asset_key = sales/returns"),
                ("partition_key = day=d:2026-01-01", "partition_key = x"),
                ("operation = MATERIALIZE", "operation != materialize"),
                ("pool = db", "pool != db"),
                (
                    "reason = DEPENDENCIES_SATISFIED",
                    "reason != DEPENDENCIES_SATISFIED",
                ),
            ],
        );
    }

    #[test]
    fn partitions_are_filtered_by_each_field() {
        let partition = pb::Partition {
            partition_key: "day=d:2026-01-01".to_owned(),
            state: pb::PartitionState::Stale.into(),
            last_attempt_outcome: pb::Outcome::Succeeded.into(),
            ..Default::default()
        };
        check(
            &partition,
            &PARTITIONS,
            &[
                ("state = STALE", "state = MISSING"),
                ("partition_key = day=d:2026-01-01", "partition_key = x"),
                // A partition that was never written has no such time.
                ("state = STALE", "materialize_time > 2020-01-01T00:00:00Z"),
                (
                    "last_attempt_outcome != FAILED",
                    "last_attempt_outcome = FAILED",
                ),
            ],
        );
    }

    #[test]
    fn materializations_are_filtered_by_each_field() {
        let output = pb::Output {
            asset_key: "sales/orders".to_owned(),
            partition_key: "day=d:2026-01-01".to_owned(),
            ..Default::default()
        };
        let version = pb::Materialization {
            output: Some(output),
            state: pb::MaterializationState::Quarantined.into(),
            gating: pb::Gating::Quarantine.into(),
            run_id: run_id().to_string(),
            record_time: NEW_YEAR,
            ..Default::default()
        };
        let own = format!("run_id = {}", run_id());
        let foreign = format!("run_id != {}", run_id());
        check(
            &version,
            &MATERIALIZATIONS,
            &[
                ("asset_key = sales.orders", "asset_key != sales/orders"),
                ("partition_key = day=d:2026-01-01", "partition_key = x"),
                ("state = QUARANTINED", "state = PROMOTED"),
                (&own, &foreign),
                ("gating = quarantine", "gating = ALLOW"),
                (
                    "record_time >= 2026-01-01T00:00:00Z",
                    "record_time > 2026-01-01T00:00:00Z",
                ),
            ],
        );
    }

    #[test]
    fn check_results_are_filtered_by_each_field() {
        let result = pb::CheckResult {
            name: "rows".to_owned(),
            passed: false,
            severity: pb::Severity::Critical.into(),
            ..Default::default()
        };
        let record = pb::CheckRecord {
            result: Some(result),
            asset_key: "sales/orders".to_owned(),
            partition_key: "day=d:2026-01-01".to_owned(),
            run_id: run_id().to_string(),
            record_time: NEW_YEAR,
            ..Default::default()
        };
        let own = format!("run_id = {}", run_id());
        let foreign = format!("run_id != {}", run_id());
        check(
            &record,
            &CHECKS,
            &[
                ("asset_key = sales.orders", "asset_key != sales/orders"),
                ("partition_key = day=d:2026-01-01", "partition_key = x"),
                ("name = rows", "name != rows"),
                ("passed = false", "passed = true"),
                ("severity = CRITICAL", "severity = INFO"),
                (&own, &foreign),
                (
                    "record_time >= 2026-01-01T00:00:00Z",
                    "record_time > 2026-01-01T00:00:00Z",
                ),
            ],
        );
    }

    #[test]
    fn an_exact_term_selects_the_index_of_checks() {
        let run = run_id();
        let check = |filter: &str, expected: CheckIndex<'_>| {
            let filter = Filter::parse(filter, &CHECKS).unwrap();
            assert_eq!(check_index(&filter), expected);
        };
        check("passed = true AND asset_key != a/b", CheckIndex::All);
        check("passed = false", CheckIndex::Failed);
        check("passed != true", CheckIndex::Failed);
        check(
            "passed = false AND asset_key = a.b",
            CheckIndex::Asset("a/b"),
        );
        check(
            &format!("asset_key = a/b AND run_id = {run}"),
            CheckIndex::Run(run),
        );
    }

    #[test]
    fn an_exact_term_selects_the_index_of_materializations() {
        let run = run_id();
        let check = |filter: &str, expected: MaterializationIndex<'_>| {
            let filter = Filter::parse(filter, &MATERIALIZATIONS).unwrap();
            assert_eq!(materialization_index(&filter), expected);
        };
        check("", MaterializationIndex::All);
        check(
            "asset_key != a/b AND state = PROMOTED",
            MaterializationIndex::All,
        );
        check("asset_key = a.b", MaterializationIndex::Asset("a/b"));
        check(
            "asset_key = a/b AND state = QUARANTINED",
            MaterializationIndex::Quarantined,
        );
        check(
            &format!("asset_key = a/b AND run_id = {run}"),
            MaterializationIndex::Run(run),
        );
    }
}
