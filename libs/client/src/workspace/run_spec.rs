//! What a run shall do, in few words.

use servo_proto::v1 as pb;
use servo_proto::v1::partition_selection::Partitions;

/// `Run::of(["+marts/revenue"]).latest(1)`
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run(pb::RunSpec);

impl Run {
    /// Of these assets, as expressions: `ns/a`, `+ns/a` with what is upstream, `ns.*`, `tag:x`.
    pub fn of<S: Into<String>>(selection: impl IntoIterator<Item = S>) -> Run {
        let selection = selection.into_iter().map(Into::into).collect();
        Run(pb::RunSpec {
            selection,
            ..Default::default()
        })
    }

    /// Partitions one by one.
    #[must_use]
    pub fn keys<S: Into<String>>(self, keys: impl IntoIterator<Item = S>) -> Run {
        let keys = keys.into_iter().map(Into::into).collect();
        self.partitions(Partitions::Keys(pb::PartitionKeys { keys }))
    }

    /// The product of stretches; a dimension that is not named takes all its values.
    #[must_use]
    pub fn slices(self, slices: impl IntoIterator<Item = pb::DimensionSlice>) -> Run {
        self.partitions(Partitions::Slices(pb::PartitionSlices {
            slices: slices.into_iter().collect(),
        }))
    }

    /// Every partition that exists when the plan is made.
    #[must_use]
    pub fn all(self) -> Run {
        self.partitions(Partitions::All(true))
    }

    /// The newest periods that exist when the plan is made, this many.
    #[must_use]
    pub fn latest(self, count: u32) -> Run {
        self.partitions(Partitions::Latest(count))
    }

    /// Says more, such as labels, configuration or a priority.
    #[must_use]
    pub fn with(mut self, say: impl FnOnce(&mut pb::RunSpec)) -> Run {
        say(&mut self.0);
        self
    }

    fn partitions(self, partitions: Partitions) -> Run {
        self.with(|spec| {
            spec.partitions.get_or_insert_default().partitions = Some(partitions);
        })
    }
}

impl From<Run> for pb::RunSpec {
    fn from(run: Run) -> pb::RunSpec {
        run.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_about_partitions_counts_and_the_rest_stays() {
        let run = Run::of(["+n/a", "-n/b"])
            .keys(["day=d:2026-01-31"])
            .with(|spec| spec.priority = 3)
            .latest(2);
        let spec = pb::RunSpec::from(run);
        assert_eq!(
            (spec.selection.join(" ").as_str(), spec.priority),
            ("+n/a -n/b", 3)
        );
        assert_eq!(
            spec.partitions.and_then(|chosen| chosen.partitions),
            Some(Partitions::Latest(2))
        );
    }
}
