//! What all partitions of an asset are like, by their places in its order: a million are looked at without being named.

mod reads;
mod summary;

use servo_model::partitioning::{Moment, Numbering, Product};
use servo_proto::v1::{PartitionState, StaleReason};

use crate::core::deployed::Deployed;
use crate::core::refusal::Refusal;

pub(crate) use reads::Reads;
pub(crate) use summary::summary;

/// What is known of a partition that somebody tried to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) made: Option<Made>,
    /// The newest attempt failed.
    pub(crate) failed: bool,
    /// The newest version waits for a decision.
    pub(crate) quarantined: bool,
}

/// The version that readers get; times are microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) recorded_at: i64,
    /// Later than that for one that was approved.
    pub(crate) readable_at: i64,
    pub(crate) same_code: bool,
}

/// The partitions of an asset in their order; an asset in one piece has a single one, without a key.
#[derive(Debug)]
pub(crate) struct Order(Option<(Product, Numbering)>);

impl Order {
    pub(crate) fn of(deployed: &Deployed, asset: u32, moment: &Moment) -> Result<Order, Refusal> {
        let Some(partitioning) = deployed.partitioning(asset) else {
            return Ok(Order(None));
        };
        let product = partitioning
            .all(moment)
            .map_err(|error| Refusal::of_partitioning("partitions", &error))?;
        let numbering = product.numbering();
        Ok(Order(Some((product, numbering))))
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.as_ref().map_or(1, |(product, _)| product.len())
    }

    /// How many values each dimension has.
    fn lengths(&self) -> Vec<u64> {
        self.0
            .as_ref()
            .map_or_else(Vec::new, |(product, _)| product.lengths())
    }

    /// `None` for a key that no longer exists.
    pub(crate) fn place(&self, key: &str) -> Option<u64> {
        match &self.0 {
            Some((_, numbering)) => numbering.place(key),
            None => key.is_empty().then_some(0),
        }
    }

    pub(crate) fn key(&self, place: u64) -> String {
        let key = self
            .0
            .as_ref()
            .and_then(|(product, _)| product.get(place)?.ok());
        key.map_or_else(String::new, |key| key.to_string())
    }
}

/// An asset's partitions, with what each of them is made from.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) order: Order,
    /// By place, ascending.
    pub(crate) known: Vec<(u64, Known)>,
    pub(crate) reads: Vec<Reads>,
}

impl Survey {
    /// Every partition that is known, with its state as long as no attempt is under way.
    pub(crate) fn states(&mut self) -> Vec<(u64, PartitionState)> {
        let reads = &mut self.reads;
        self.known
            .iter()
            .map(|(place, known)| (*place, state(known, newest(reads, *place))))
            .collect()
    }

    /// The places whose data is stale for this reason; unspecified takes any.
    pub(crate) fn stale(&mut self, reason: StaleReason) -> Vec<u64> {
        let reads = &mut self.reads;
        let is_stale = |(place, known): &&(u64, Known)| {
            let Some(made) = &known.made else {
                return false;
            };
            match reason {
                StaleReason::Unspecified => !is_current(made, newest(reads, *place)),
                StaleReason::UpstreamChanged => is_overtaken(made, newest(reads, *place)),
                StaleReason::CodeChanged => !made.same_code,
                StaleReason::UpstreamStale | StaleReason::TooOld => false,
            }
        };
        self.known
            .iter()
            .filter(is_stale)
            .map(|(place, _)| *place)
            .collect()
    }
}

/// When the newest version came that a partition could have been made from.
fn newest(reads: &mut [Reads], place: u64) -> Option<i64> {
    reads
        .iter_mut()
        .filter_map(|reads| reads.newest(place))
        .max()
}

fn is_overtaken(made: &Made, newest_read: Option<i64>) -> bool {
    newest_read.is_some_and(|newest| newest > made.recorded_at)
}

fn is_current(made: &Made, newest_read: Option<i64>) -> bool {
    made.same_code && !is_overtaken(made, newest_read)
}

fn state(known: &Known, newest_read: Option<i64>) -> PartitionState {
    match &known.made {
        _ if known.failed => PartitionState::Failed,
        _ if known.quarantined => PartitionState::Quarantined,
        None => PartitionState::Missing,
        Some(made) if is_current(made, newest_read) => PartitionState::UpToDate,
        Some(_) => PartitionState::Stale,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::samples::{asset, days, manifest, partitioning};

    fn made(recorded_at: i64) -> Known {
        let made = Made {
            recorded_at,
            readable_at: recorded_at,
            same_code: true,
        };
        Known {
            made: Some(made),
            failed: false,
            quarantined: false,
        }
    }

    /// `n/down` reads `n/up` by day; both are given as (day of January, time).
    fn survey(up: &[(u64, i64)], down: &[(u64, Known)]) -> Survey {
        let assets = vec![
            partitioning(asset("n/down", &["n/up"]), vec![days()]),
            partitioning(asset("n/up", &[]), vec![days()]),
        ];
        let deployed = Deployed::new(manifest(assets)).unwrap();
        let moment = Moment {
            now: "2027-01-01T00:00:00Z".parse().unwrap(),
            ..Default::default()
        };
        let order = Order::of(&deployed, 0, &moment).unwrap();
        let link = deployed.task_links(0).next().unwrap();
        let mut reads = Reads::of(&deployed, 0, link, &moment).unwrap();
        up.iter()
            .for_each(|(day, at)| reads.note(&format!("day=d:2026-01-{day:02}"), *at));
        let known = down.iter().map(|(day, known)| (day - 1, *known)).collect();
        Survey {
            order,
            known,
            reads: vec![reads],
        }
    }

    #[test]
    fn a_partition_is_judged_by_what_it_reads_itself() {
        use PartitionState::{Failed, Missing, Quarantined, Stale, UpToDate};
        let old_code = Made {
            same_code: false,
            ..made(9).made.unwrap()
        };
        let failed = Known {
            failed: true,
            ..made(5)
        };
        let waiting = Known {
            made: None,
            quarantined: true,
            failed: false,
        };
        let rejected = Known {
            quarantined: false,
            ..waiting
        };
        let known = [
            (1, made(5)),
            (2, made(5)),
            (
                3,
                Known {
                    made: Some(old_code),
                    ..made(9)
                },
            ),
            (4, failed),
            (5, waiting),
            (6, rejected),
        ];
        let mut survey = survey(&[(1, 4), (2, 6), (4, 6)], &known);
        let states: Vec<PartitionState> = survey
            .states()
            .into_iter()
            .map(|(_, state)| state)
            .collect();
        assert_eq!(
            states,
            [UpToDate, Stale, Stale, Failed, Quarantined, Missing]
        );
        assert_eq!(
            survey.stale(StaleReason::Unspecified),
            [1, 2, 3],
            "a failed attempt leaves stale data stale"
        );
        assert_eq!(survey.stale(StaleReason::UpstreamChanged), [1, 3]);
        assert_eq!(survey.stale(StaleReason::CodeChanged), [2]);
    }

    #[test]
    fn places_and_keys_are_the_same_thing() {
        let survey = survey(&[], &[]);
        assert_eq!(survey.order.len(), 31);
        assert_eq!(survey.order.key(30), "day=d:2026-01-31");
        assert_eq!(survey.order.place("day=d:2026-01-31"), Some(30));
        assert_eq!(survey.order.place("day=d:2026-02-01"), None);
        assert_eq!(Order(None).place(""), Some(0));
    }
}
