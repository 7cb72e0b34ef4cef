//! Decides whether partitions are missing, failed or stale, from the scheduler's rows.

use std::collections::HashMap;

use servo_model::Timestamp;
use servo_proto::mesh::v1::PartitionStaleness;
use servo_proto::proto_time;
use servo_proto::v1::{PartitionCondition, StaleCause, StaleReason};

/// A partition by asset key and partition key; the partition key of an unpartitioned asset is
/// empty.
pub(crate) type PartitionRef = (String, String);

/// The state of a partition for which at least one attempt was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    /// The version that readers get.
    pub(crate) promoted: Option<Version>,
    /// The newest attempt failed.
    pub(crate) failed: bool,
}

/// A materialization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) recorded_at: Timestamp,
    /// When readers got it. Later than `recorded_at` for a version that was quarantined and
    /// approved.
    pub(crate) readable_at: Timestamp,
    /// The code version that made it.
    pub(crate) code: String,
}

pub(crate) type Statuses = HashMap<PartitionRef, Status>;

/// The state of a task's outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Freshness {
    pub(crate) missing: bool,
    pub(crate) failed: bool,
    pub(crate) stale: bool,
}

impl Freshness {
    /// `outputs` are all partitions that the task makes, `inputs` those that it reads. An input
    /// without a materialization, such as a source, never makes an output stale.
    pub(crate) fn of<'a>(
        statuses: &Statuses,
        outputs: impl Iterator<Item = &'a PartitionRef>,
        inputs: impl Iterator<Item = &'a PartitionRef>,
        code_version: &str,
    ) -> Freshness {
        let mut found = Freshness::default();
        let mut oldest = Timestamp::MAX;
        for partition in outputs {
            let status = statuses.get(partition);
            found.failed |= status.is_some_and(|status| status.failed);
            match status.and_then(|status| status.promoted.as_ref()) {
                Some(version) => {
                    oldest = oldest.min(version.recorded_at);
                    found.stale |= version.code != code_version;
                }
                None => found.missing = true,
            }
        }
        let newest_input = inputs
            .filter_map(|partition| Some(statuses.get(partition)?.promoted.as_ref()?.readable_at))
            .max();
        found.stale |= newest_input.is_some_and(|newest| newest > oldest);
        found.stale &= !found.missing;
        found
    }

    pub(crate) fn is_up_to_date(self) -> bool {
        self == Freshness::default()
    }

    pub(crate) fn meets(self, condition: PartitionCondition) -> bool {
        match condition {
            PartitionCondition::Unspecified => true,
            PartitionCondition::Missing => self.missing,
            PartitionCondition::Failed => self.failed,
            PartitionCondition::Stale => self.stale,
            PartitionCondition::NotUpToDate => !self.is_up_to_date(),
        }
    }
}

const CAUSES_MAX: usize = 16;

/// Returns why a partition is stale; empty when it has no data.
pub(crate) fn staleness(
    statuses: &Statuses,
    own: &PartitionRef,
    inputs: &[PartitionRef],
    code_version: &str,
) -> PartitionStaleness {
    let Some(promoted) = statuses
        .get(own)
        .and_then(|status| status.promoted.as_ref())
    else {
        return PartitionStaleness::default();
    };
    let newer = |partition: &PartitionRef| {
        let at = statuses.get(partition)?.promoted.as_ref()?.readable_at;
        (at > promoted.recorded_at).then(|| (at, partition.clone()))
    };
    let newer: Vec<(Timestamp, PartitionRef)> = inputs.iter().filter_map(newer).collect();
    let changed = newer
        .iter()
        .map(|(_, (asset_key, partition_key))| StaleCause {
            reason: StaleReason::UpstreamChanged.into(),
            asset_key: asset_key.clone(),
            partition_key: partition_key.clone(),
        });
    let other_code = StaleCause {
        reason: StaleReason::CodeChanged.into(),
        ..StaleCause::default()
    };
    let other_code = (promoted.code != code_version).then_some(other_code);
    PartitionStaleness {
        causes: other_code
            .into_iter()
            .chain(changed)
            .take(CAUSES_MAX)
            .collect(),
        stale_since: newer.iter().map(|(at, _)| *at).min().map(proto_time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(at: i64, code: &str) -> Version {
        let at = Timestamp::from_unix_us(at);
        Version {
            recorded_at: at,
            readable_at: at,
            code: code.to_owned(),
        }
    }

    #[test]
    fn an_approved_version_counts_from_its_approval() {
        let (own, read) = (partition("b"), partition("a"));
        let approved = Version {
            readable_at: Timestamp::from_unix_us(9),
            ..version(3, "v1")
        };
        let statuses: Statuses = [(read.clone(), approved), (own.clone(), version(5, "v1"))]
            .map(|(partition, made)| {
                (
                    partition,
                    Status {
                        promoted: Some(made),
                        failed: false,
                    },
                )
            })
            .into();
        assert!(Freshness::of(&statuses, [&own].into_iter(), [&read].into_iter(), "v1").stale);
        assert_eq!(staleness(&statuses, &own, &[read], "v1").causes.len(), 1);
    }

    #[test]
    fn staleness_names_the_newer_inputs() {
        let partition = |key: &str| ("n/a".to_owned(), key.to_owned());
        let made = |at: i64| Status {
            promoted: Some(version(at, "v1")),
            failed: false,
        };
        let own = ("n/b".to_owned(), String::new());
        let statuses: Statuses = [
            (partition("k=s:1"), made(9_000_000)),
            (partition("k=s:2"), made(1)),
            (own.clone(), made(5)),
        ]
        .into();
        let read = [partition("k=s:1"), partition("k=s:2"), partition("k=s:3")];
        let found = staleness(&statuses, &own, &read, "v2");
        let causes: Vec<(StaleReason, &str)> = found
            .causes
            .iter()
            .map(|cause| (cause.reason(), cause.partition_key.as_str()))
            .collect();
        assert_eq!(
            causes,
            [
                (StaleReason::CodeChanged, ""),
                (StaleReason::UpstreamChanged, "k=s:1")
            ]
        );
        assert_eq!(
            found.stale_since,
            Some(prost_types::Timestamp {
                seconds: 9,
                nanos: 0
            })
        );
        assert_eq!(
            staleness(&statuses, &own, &read[1..], "v1"),
            PartitionStaleness::default()
        );
        assert_eq!(
            staleness(&statuses, &partition("k=s:3"), &[], "v1"),
            PartitionStaleness::default()
        );
    }

    fn partition(name: &str) -> PartitionRef {
        (name.to_owned(), String::new())
    }

    /// `b` reads `a`. Each is given as the time of its version, its code, and whether its newest
    /// attempt failed.
    fn of_b(a: Option<(i64, &str, bool)>, b: Option<(i64, &str, bool)>) -> Freshness {
        let status = |(at, code, failed): (i64, &str, bool)| Status {
            promoted: (at > 0).then(|| version(at, code)),
            failed,
        };
        let known = [("a", a), ("b", b)].into_iter();
        let statuses = known
            .filter_map(|(name, known)| Some((partition(name), status(known?))))
            .collect();
        Freshness::of(
            &statuses,
            [partition("b")].iter(),
            [partition("a")].iter(),
            "v1",
        )
    }

    #[test]
    fn data_is_fresh_when_newer_than_its_inputs_and_made_by_the_same_code() {
        let fresh = Freshness::default();
        let (missing, stale) = (
            Freshness {
                missing: true,
                ..fresh
            },
            Freshness {
                stale: true,
                ..fresh
            },
        );
        assert_eq!(of_b(None, None), missing);
        assert_eq!(of_b(None, Some((5, "v1", false))), fresh);
        assert_eq!(of_b(Some((4, "v0", false)), Some((5, "v1", false))), fresh);
        assert_eq!(of_b(Some((6, "v1", false)), Some((5, "v1", false))), stale);
        assert_eq!(of_b(None, Some((5, "v0", false))), stale);
        assert_eq!(
            of_b(None, Some((5, "v1", true))),
            Freshness {
                failed: true,
                ..fresh
            }
        );
        assert_eq!(
            of_b(Some((6, "v1", false)), Some((0, "", true))),
            Freshness {
                failed: true,
                ..missing
            }
        );
    }

    #[test]
    fn conditions_match_the_states_they_name() {
        let fresh = Freshness::default();
        let failed = Freshness {
            failed: true,
            ..fresh
        };
        assert!(
            failed.meets(PartitionCondition::Failed)
                && failed.meets(PartitionCondition::NotUpToDate)
        );
        assert!(
            !failed.meets(PartitionCondition::Stale) && !failed.meets(PartitionCondition::Missing)
        );
        assert!(
            !fresh.meets(PartitionCondition::NotUpToDate)
                && fresh.meets(PartitionCondition::Unspecified)
        );
    }
}
