//! Manifests for tests and benchmarks.

use servo_client::api;

/// An asset that depends on `upstream`; `config` tells the test worker what to do.
pub fn asset(key: &str, upstream: &[&str], config: &str) -> api::AssetDefinition {
    let dependency = |upstream: &&str| api::Dependency {
        upstream: (*upstream).to_owned(),
        ..Default::default()
    };
    let handler = api::Handler {
        name: "noop".to_owned(),
        config_json: config.to_owned(),
    };
    api::AssetDefinition {
        key: key.to_owned(),
        dependencies: upstream.iter().map(dependency).collect(),
        code: Some(api::CodeRef {
            target: Some(api::code_ref::Target::Handler(handler)),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Timeouts short enough for a test that waits until an attempt is lost, and enough retries.
pub fn with_short_timeouts(asset: api::AssetDefinition) -> api::AssetDefinition {
    let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    let timeouts = api::Timeouts {
        execution: seconds(60),
        dispatch_ack: seconds(5),
        heartbeat: seconds(4),
    };
    let retry = api::RetryPolicy {
        max_attempts: 100,
        backoff: api::Backoff::Constant.into(),
        initial_delay: Some(prost_types::Duration {
            seconds: 0,
            nanos: 100_000_000,
        }),
        ..Default::default()
    };
    api::AssetDefinition {
        timeouts: Some(timeouts),
        retry: Some(retry),
        ..asset
    }
}

/// `layers` layers of `width` tasks, each of which depends on `fan_in` tasks of the previous layer.
pub fn layers(
    layers: usize,
    width: usize,
    fan_in: usize,
    config: &str,
) -> Vec<api::AssetDefinition> {
    let key = |layer: usize, n: usize| format!("layers/l{layer}_t{n}");
    let task = |layer: usize, n: usize| {
        let before = (0..fan_in.min(width)).filter(|_| layer > 0);
        let upstream: Vec<String> = before.map(|k| key(layer - 1, (n + k) % width)).collect();
        let upstream: Vec<&str> = upstream.iter().map(String::as_str).collect();
        asset(&key(layer, n), &upstream, config)
    };
    (0..layers)
        .flat_map(|layer| (0..width).map(move |n| (layer, n)))
        .map(|(l, n)| task(l, n))
        .collect()
}

pub fn manifest(assets: Vec<api::AssetDefinition>) -> api::Manifest {
    api::Manifest {
        format: 1,
        code_version: "test".to_owned(),
        assets,
        ..Default::default()
    }
}

/// One root, `width` tasks that depend on it, and a join of all of them.
pub fn fan_out(width: usize) -> api::Manifest {
    let middle: Vec<String> = (0..width).map(|n| format!("fan/t{n}")).collect();
    let mut assets = vec![asset("fan/root", &[], "")];
    assets.extend(middle.iter().map(|key| asset(key, &["fan/root"], "")));
    let all: Vec<&str> = middle.iter().map(String::as_str).collect();
    assets.push(asset("fan/join", &all, ""));
    manifest(assets)
}

/// `length` tasks, each of which depends on the previous one.
pub fn chain(length: usize) -> api::Manifest {
    let keys: Vec<String> = (0..length).map(|n| format!("chain/t{n}")).collect();
    let link = |n: usize| match n {
        0 => asset(&keys[0], &[], ""),
        n => asset(&keys[n], &[&keys[n - 1]], ""),
    };
    manifest((0..length).map(link).collect())
}

/// `layers` assets of `width` partitions; each partition depends on the same one of up to `reach`
/// previous layers.
pub fn partitioned_layers(layers: usize, width: usize, reach: usize) -> api::Manifest {
    let key = |layer: usize| format!("deep/l{layer}");
    let layer = |n: usize| {
        let upstream: Vec<String> = (n.saturating_sub(reach)..n).map(key).collect();
        let upstream: Vec<&str> = upstream.iter().map(String::as_str).collect();
        api::AssetDefinition {
            partitions: Some(static_partitions(width)),
            ..asset(&key(n), &upstream, "")
        }
    };
    manifest((0..layers).map(layer).collect())
}

/// Selects every partition of the selected assets.
pub fn all_partitions(selection: &[&str]) -> api::RunSpec {
    let all = api::partition_selection::Partitions::All(true);
    api::RunSpec {
        selection: selection.iter().map(|s| (*s).to_owned()).collect(),
        partitions: Some(api::PartitionSelection {
            partitions: Some(all),
            only: 0,
        }),
        ..Default::default()
    }
}

fn static_partitions(width: usize) -> api::PartitionsDefinition {
    let values = api::StaticValues {
        r#type: api::ValueType::String.into(),
        values: (0..width).map(|n| format!("p{n:05}")).collect(),
    };
    api::PartitionsDefinition {
        dimensions: vec![api::PartitionDimension {
            name: "part".to_owned(),
            values: Some(api::partition_dimension::Values::Fixed(values)),
        }],
    }
}

/// One root, an asset of `width` partitions that depends on it, and a join over all of them.
pub fn partitioned_fan_out(width: usize) -> api::Manifest {
    let over_all = api::PartitionMapping {
        dimensions: vec![api::DimensionMapping {
            upstream: "part".to_owned(),
            rule: Some(api::dimension_mapping::Rule::All(true)),
            ..Default::default()
        }],
    };
    let mut join = asset("fan/join", &["fan/part"], "");
    join.dependencies[0].mapping = Some(over_all);
    manifest(vec![
        asset("fan/root", &[], ""),
        api::AssetDefinition {
            partitions: Some(static_partitions(width)),
            ..asset("fan/part", &["fan/root"], "")
        },
        join,
    ])
}
