//! Minimal manifests for tests.

use servo_proto::v1::code_ref::Target;
use servo_proto::v1::partition_dimension::Values;
use servo_proto::v1::partition_selection::Partitions;
use servo_proto::v1::{
    AssetDefinition, CodeRef, Dependency, Handler, Manifest, PartitionDimension, PartitionKeys,
    PartitionSelection, PartitionsDefinition, RunSpec, StaticValues, TimeGrain, TimeGrid,
};

pub(crate) fn manifest(assets: Vec<AssetDefinition>) -> Manifest {
    Manifest {
        format: 1,
        assets,
        ..Default::default()
    }
}

pub(crate) fn asset(key: &str, upstream: &[&str]) -> AssetDefinition {
    let dependency = |upstream: &&str| Dependency {
        upstream: (*upstream).to_owned(),
        parameter: upstream.replace('/', "_"),
        ..Default::default()
    };
    let handler = Handler {
        name: "noop".to_owned(),
        config_json: String::new(),
    };
    AssetDefinition {
        key: key.to_owned(),
        dependencies: upstream.iter().map(dependency).collect(),
        code: Some(CodeRef {
            target: Some(Target::Handler(handler)),
            ..Default::default()
        }),
        ..Default::default()
    }
}

pub(crate) fn source(key: &str) -> AssetDefinition {
    AssetDefinition {
        key: key.to_owned(),
        source: true,
        ..Default::default()
    }
}

pub(crate) fn partitioned(
    asset: AssetDefinition,
    dimensions: Vec<PartitionDimension>,
) -> AssetDefinition {
    AssetDefinition {
        partitions: Some(PartitionsDefinition { dimensions }),
        ..asset
    }
}

pub(crate) fn time(
    name: &str,
    grain: TimeGrain,
    zone: &str,
    start: &str,
    end: &str,
) -> PartitionDimension {
    let grid = TimeGrid {
        grain: grain.into(),
        time_zone: zone.to_owned(),
        start: start.to_owned(),
        end: end.to_owned(),
    };
    PartitionDimension {
        name: name.to_owned(),
        values: Some(Values::Time(grid)),
    }
}

/// Days of January 2026.
pub(crate) fn days() -> PartitionDimension {
    time("day", TimeGrain::Day, "", "2026-01-01", "2026-02-01")
}

pub(crate) fn fixed(name: &str, values: &[&str]) -> PartitionDimension {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    PartitionDimension {
        name: name.to_owned(),
        values: Some(Values::Fixed(StaticValues {
            values,
            ..Default::default()
        })),
    }
}

pub(crate) fn keys(keys: &[&str]) -> PartitionSelection {
    let keys = keys.iter().map(|key| (*key).to_owned()).collect();
    PartitionSelection {
        partitions: Some(Partitions::Keys(PartitionKeys { keys })),
        ..Default::default()
    }
}

pub(crate) fn run(selection: &[&str], partitions: Option<PartitionSelection>) -> RunSpec {
    let selection = selection
        .iter()
        .map(|expression| (*expression).to_owned())
        .collect();
    RunSpec {
        selection,
        partitions,
        ..Default::default()
    }
}
