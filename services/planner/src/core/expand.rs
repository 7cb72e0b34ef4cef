//! The partitions that a selection stands for, a page at a time, without writing all of them out.

use servo_model::PartitionKey;
use servo_model::partitioning::{Moment, Partitioning, Product};
use servo_proto::v1::{ErrorReason as Reason, PartitionCondition, PartitionSelection};

use crate::core::choose::{Wanted, condition};
use crate::core::deployed::Deployed;
use crate::core::refusal::Refusal;

const FIELD: &str = "partitions";

/// Partitions in order.
#[derive(Debug)]
pub(crate) enum Expanded {
    /// An asset in one piece.
    Whole,
    Listed(Vec<PartitionKey>),
    Product(Product),
}

impl Expanded {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Expanded::Whole => 1,
            Expanded::Listed(keys) => keys.len() as u64,
            Expanded::Product(product) => product.len(),
        }
    }

    /// The keys from `first` on, at most `count`.
    pub(crate) fn page(&self, first: u64, count: u64, newest_first: bool) -> Vec<String> {
        let (total, end) = (self.len(), first.saturating_add(count).min(self.len()));
        let place = |index: u64| {
            if newest_first {
                total - 1 - index
            } else {
                index
            }
        };
        (first..end)
            .filter_map(|index| self.get(place(index)))
            .collect()
    }

    fn get(&self, index: u64) -> Option<String> {
        match self {
            Expanded::Whole => (index == 0).then(String::new),
            Expanded::Listed(keys) => keys
                .get(usize::try_from(index).ok()?)
                .map(ToString::to_string),
            Expanded::Product(product) => product.get(index)?.ok().map(|key| key.to_string()),
        }
    }
}

/// The one asset that a selection means.
pub(crate) fn only_asset(deployed: &Deployed, selection: &[String]) -> Result<u32, Refusal> {
    match deployed.select("selection", selection)?.as_slice() {
        [asset] => Ok(*asset),
        assets => {
            let sentence = format!("means {} assets; with_staleness takes one", assets.len());
            Err(Refusal::of_field(
                Reason::SelectionInvalid,
                "selection",
                sentence,
            ))
        }
    }
}

/// All selected assets must be cut alike: keys of two cuts have no common order.
pub(crate) fn expand(
    deployed: &Deployed,
    selection: &[String],
    partitions: Option<&PartitionSelection>,
    moment: &Moment,
) -> Result<Expanded, Refusal> {
    let selected = deployed.select("selection", selection)?;
    let mut partitioned = selected
        .iter()
        .filter_map(|asset| Some((*asset, deployed.partitioning(*asset)?)));
    let Some((first, partitioning)) = partitioned.next() else {
        let sentence = "none of the selected assets has partitions";
        return Err(Refusal::of_field(
            Reason::SelectionInvalid,
            "selection",
            sentence,
        ));
    };
    if let Some((other, _)) = partitioned.find(|(_, other)| *other != partitioning) {
        let sentence = format!(
            "`{}` and `{}` are cut in different ways; ask one by one",
            deployed.name(first),
            deployed.name(other)
        );
        return Err(Refusal::of_field(
            Reason::PartitionInvalid,
            "selection",
            sentence,
        ));
    }
    if condition(partitions, FIELD)? != PartitionCondition::Unspecified {
        let sentence =
            "partitions are only named here, whatever they are like; leave it out, or plan a run";
        return Err(Refusal::of_field(
            Reason::PartitionInvalid,
            format!("{FIELD}.only"),
            sentence,
        ));
    }
    let Some(wanted) = Wanted::read(partitions, FIELD)? else {
        return Err(Refusal::of_field(
            Reason::PartitionInvalid,
            FIELD,
            "is missing; say which are meant",
        ));
    };
    of_partitioning(partitioning, &wanted, moment)
}

fn of_partitioning(
    partitioning: &Partitioning,
    wanted: &Wanted<'_>,
    moment: &Moment,
) -> Result<Expanded, Refusal> {
    if let Wanted::Keys(keys) = wanted {
        for key in keys {
            partitioning
                .check(key, moment)
                .map_err(|error| Refusal::of_partitioning(format!("{FIELD}.keys"), &error))?;
        }
        return Ok(Expanded::Listed(keys.iter().cloned().collect()));
    }
    let product = wanted
        .of(partitioning, moment)
        .map_err(|error| Refusal::of_partitioning(FIELD, &error))?;
    Ok(Expanded::Product(product))
}
