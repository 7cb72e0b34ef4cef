//! A builder for the specification of a run.

use servo_proto::v1 as pb;
use servo_proto::v1::partition_selection::Partitions;

/// The assets and partitions of a run: `Run::of(["+marts/revenue"]).latest(1)`
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run(pb::RunSpec);

impl Run {
    /// Selects assets with expressions: `ns/a`, `+ns/a` with its upstreams, `ns.*`, `tag:x`.
    pub fn of<S: Into<String>>(selection: impl IntoIterator<Item = S>) -> Run {
        let selection = selection.into_iter().map(Into::into).collect();
        Run(pb::RunSpec {
            selection,
            ..Default::default()
        })
    }

    /// Selects partitions by key.
    #[must_use]
    pub fn keys<S: Into<String>>(self, keys: impl IntoIterator<Item = S>) -> Run {
        let keys = keys.into_iter().map(Into::into).collect();
        self.partitions(Partitions::Keys(pb::PartitionKeys { keys }))
    }

    /// Selects the product of slices; a dimension without a slice contributes all its values.
    #[must_use]
    pub fn slices(self, slices: impl IntoIterator<Item = pb::DimensionSlice>) -> Run {
        self.partitions(Partitions::Slices(pb::PartitionSlices {
            slices: slices.into_iter().collect(),
        }))
    }

    /// Selects all partitions that exist when the plan is made.
    #[must_use]
    pub fn all(self) -> Run {
        self.partitions(Partitions::All(true))
    }

    /// Selects the newest `count` periods that exist when the plan is made.
    #[must_use]
    pub fn latest(self, count: u32) -> Run {
        self.partitions(Partitions::Latest(count))
    }

    /// Sets further fields, such as labels, configuration or a priority.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut pb::RunSpec)) -> Run {
        change(&mut self.0);
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
    fn last_partition_selection_wins() {
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
