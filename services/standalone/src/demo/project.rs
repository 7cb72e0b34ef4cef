//! A small shop: orders come in by day, are cleaned, and become revenue; a model of fraud fails, and what would be
//! made from it is skipped.

use servo_client::api;

pub(super) const FAILS: &str = "shop/fraud_model";
pub(super) const SKIPPED: &str = "shop/fraud_report";

const DAYS: [&str; 4] = ["2026-11-12", "2026-11-13", "2026-11-14", "2026-11-15"];

pub(super) fn manifest() -> api::Manifest {
    let daily = Some(api::PartitionsDefinition {
        dimensions: vec![api::PartitionDimension {
            name: "day".to_owned(),
            values: Some(api::partition_dimension::Values::Time(api::TimeGrid {
                grain: api::TimeGrain::Day.into(),
                time_zone: "UTC".to_owned(),
                start: DAYS[0].to_owned(),
                end: String::new(),
            })),
        }],
    });
    let quick_retry = api::RetryPolicy {
        max_attempts: 3,
        initial_delay: Some(prost_types::Duration {
            seconds: 0,
            nanos: 300_000_000,
        }),
        ..Default::default()
    };
    let assets = vec![
        api::AssetDefinition {
            partitions: daily.clone(),
            ..asset("shop/raw_orders", &[], r#"{"ms":150}"#)
        },
        api::AssetDefinition {
            partitions: daily,
            retry: Some(quick_retry),
            ..asset(
                "shop/clean_orders",
                &["shop/raw_orders"],
                r#"{"ms":200,"flaky":true}"#,
            )
        },
        asset("shop/customers", &[], r#"{"ms":250}"#),
        api::AssetDefinition {
            dependencies: vec![over_all("shop/clean_orders"), dependency("shop/customers")],
            ..asset("shop/daily_revenue", &[], r#"{"ms":300}"#)
        },
        asset("shop/dashboard", &["shop/daily_revenue"], r#"{"ms":100}"#),
        asset(FAILS, &["shop/customers"], r#"{"ms":200,"fails":true}"#),
        asset(SKIPPED, &[FAILS], r#"{"ms":100}"#),
    ];
    api::Manifest {
        format: 1,
        code_version: "demo".to_owned(),
        assets,
        ..Default::default()
    }
}

/// A run of all of it, for the days that are over.
pub(super) fn everything() -> api::RunSpec {
    let keys = DAYS.iter().map(|day| format!("day=d:{day}")).collect();
    api::RunSpec {
        selection: vec!["shop.*".to_owned()],
        partitions: Some(api::PartitionSelection {
            partitions: Some(api::partition_selection::Partitions::Keys(
                api::PartitionKeys { keys },
            )),
            only: 0,
        }),
        ..Default::default()
    }
}

fn asset(key: &str, upstream: &[&str], config: &str) -> api::AssetDefinition {
    let handler = api::Handler {
        name: "demo".to_owned(),
        config_json: config.to_owned(),
    };
    api::AssetDefinition {
        key: key.to_owned(),
        dependencies: upstream
            .iter()
            .map(|upstream| dependency(upstream))
            .collect(),
        code: Some(api::CodeRef {
            target: Some(api::code_ref::Target::Handler(handler)),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn dependency(upstream: &str) -> api::Dependency {
    api::Dependency {
        upstream: upstream.to_owned(),
        ..Default::default()
    }
}

/// Reads every partition of it.
fn over_all(upstream: &str) -> api::Dependency {
    api::Dependency {
        mapping: Some(all_partitions()),
        ..dependency(upstream)
    }
}

fn all_partitions() -> api::PartitionMapping {
    let days = api::DimensionMapping {
        upstream: "day".to_owned(),
        rule: Some(api::dimension_mapping::Rule::All(true)),
        ..Default::default()
    };
    api::PartitionMapping {
        dimensions: vec![days],
    }
}
