//! What partitions are like, judged from what the scheduler knows of them.

use std::collections::HashMap;

use servo_proto::v1::PartitionCondition;

/// A partition by the names of its asset and itself; an asset in one piece has an empty key.
pub(crate) type Place = (String, String);

/// What is known of a partition that somebody tried to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    /// The version that readers get: when it was recorded, in microseconds, and the code it was made with.
    pub(crate) made: Option<(i64, String)>,
    /// The newest attempt failed.
    pub(crate) failed: bool,
}

pub(crate) type Statuses = HashMap<Place, Status>;

/// What the output of a task is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Freshness {
    pub(crate) missing: bool,
    pub(crate) failed: bool,
    pub(crate) stale: bool,
}

impl Freshness {
    /// `made` are all partitions that the task makes, `read` those that it reads. What was never materialised cannot
    /// be newer than anything: sources are such.
    pub(crate) fn of<'a>(
        statuses: &Statuses,
        made: impl Iterator<Item = &'a Place>,
        read: impl Iterator<Item = &'a Place>,
        code_version: &str,
    ) -> Freshness {
        let mut found = Freshness::default();
        let mut oldest = i64::MAX;
        for place in made {
            let status = statuses.get(place);
            found.failed |= status.is_some_and(|status| status.failed);
            match status.and_then(|status| status.made.as_ref()) {
                Some((at, code)) => {
                    oldest = oldest.min(*at);
                    found.stale |= code != code_version;
                }
                None => found.missing = true,
            }
        }
        let newest_read = read.filter_map(|place| Some(statuses.get(place)?.made.as_ref()?.0)).max();
        found.stale |= newest_read.is_some_and(|newest| newest > oldest);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> Place {
        (name.to_owned(), String::new())
    }

    /// `b` reads `a`; each is given as the time of its version, its code and whether its newest attempt failed.
    fn of_b(a: Option<(i64, &str, bool)>, b: Option<(i64, &str, bool)>) -> Freshness {
        let status = |(at, code, failed): (i64, &str, bool)| Status {
            made: (at > 0).then(|| (at, code.to_owned())),
            failed,
        };
        let known = [("a", a), ("b", b)].into_iter();
        let statuses = known.filter_map(|(name, known)| Some((place(name), status(known?)))).collect();
        Freshness::of(&statuses, [place("b")].iter(), [place("a")].iter(), "v1")
    }

    #[test]
    fn data_is_current_when_it_is_younger_than_what_it_is_made_from_and_by_the_same_code() {
        let fresh = Freshness::default();
        let (missing, stale) = (Freshness { missing: true, ..fresh }, Freshness { stale: true, ..fresh });
        assert_eq!(of_b(None, None), missing);
        assert_eq!(of_b(None, Some((5, "v1", false))), fresh);
        assert_eq!(of_b(Some((4, "v0", false)), Some((5, "v1", false))), fresh);
        assert_eq!(of_b(Some((6, "v1", false)), Some((5, "v1", false))), stale);
        assert_eq!(of_b(None, Some((5, "v0", false))), stale);
        assert_eq!(of_b(None, Some((5, "v1", true))), Freshness { failed: true, ..fresh });
        assert_eq!(of_b(Some((6, "v1", false)), Some((0, "", true))), Freshness { failed: true, ..missing });
    }

    #[test]
    fn conditions_choose_by_what_they_name() {
        let fresh = Freshness::default();
        let failed = Freshness { failed: true, ..fresh };
        assert!(failed.meets(PartitionCondition::Failed) && failed.meets(PartitionCondition::NotUpToDate));
        assert!(!failed.meets(PartitionCondition::Stale) && !failed.meets(PartitionCondition::Missing));
        assert!(
            !fresh.meets(PartitionCondition::NotUpToDate) && fresh.meets(PartitionCondition::Unspecified)
        );
    }
}
