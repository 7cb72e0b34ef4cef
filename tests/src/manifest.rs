//! Manifests for tests and benches, made short.

use servo_client::api;

/// An asset that the test worker runs as `config` says, after `upstream`.
pub fn asset(key: &str, upstream: &[&str], config: &str) -> api::AssetDefinition {
    let dependency =
        |upstream: &&str| api::Dependency { upstream: (*upstream).to_owned(), ..Default::default() };
    let handler = api::Handler { name: "noop".to_owned(), config_json: config.to_owned() };
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

pub fn manifest(assets: Vec<api::AssetDefinition>) -> api::Manifest {
    api::Manifest { format: 1, code_version: "test".to_owned(), assets, ..Default::default() }
}

/// One root, `width` tasks behind it, and a join of them all.
pub fn fan_out(width: usize) -> api::Manifest {
    let middle: Vec<String> = (0..width).map(|n| format!("fan/t{n}")).collect();
    let mut assets = vec![asset("fan/root", &[], "")];
    assets.extend(middle.iter().map(|key| asset(key, &["fan/root"], "")));
    let all: Vec<&str> = middle.iter().map(String::as_str).collect();
    assets.push(asset("fan/join", &all, ""));
    manifest(assets)
}

/// `length` tasks, each behind the one before.
pub fn chain(length: usize) -> api::Manifest {
    let keys: Vec<String> = (0..length).map(|n| format!("chain/t{n}")).collect();
    let link = |n: usize| match n {
        0 => asset(&keys[0], &[], ""),
        n => asset(&keys[n], &[&keys[n - 1]], ""),
    };
    manifest((0..length).map(link).collect())
}

/// One root, an asset cut into `width` partitions behind it, and a join over all of them.
pub fn partitioned_fan_out(width: usize) -> api::Manifest {
    let values = api::StaticValues {
        r#type: api::ValueType::String.into(),
        values: (0..width).map(|n| format!("p{n:05}")).collect(),
    };
    let cut = api::PartitionsDefinition {
        dimensions: vec![api::PartitionDimension {
            name: "part".to_owned(),
            values: Some(api::partition_dimension::Values::Fixed(values)),
        }],
    };
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
        api::AssetDefinition { partitions: Some(cut), ..asset("fan/part", &["fan/root"], "") },
        join,
    ])
}
