//! The fields that the planner's lists can be filtered by.

use servo_mesh::filter::{Field, entry};
use servo_proto::v1::{AssetDefinition, Deployment, DynamicPartition};

pub(crate) static ASSETS: [Field<AssetDefinition>; 6] = [
    Field::asset_key("key", |asset| &asset.key),
    Field::text("namespace", |asset| {
        asset.key.split('/').next().unwrap_or_default()
    }),
    Field::map("tags", |asset, key| entry(&asset.tags, key)),
    Field::list("owners", |asset| &asset.owners),
    Field::text("pool", |asset| &asset.pool),
    Field::flag("source", |asset| asset.source),
];

pub(crate) static DEPLOYMENTS: [Field<Deployment>; 3] = [
    Field::text("code_version", |deployment| &deployment.code_version),
    Field::time("deploy_time", |deployment| deployment.deploy_time),
    Field::map("labels", |deployment, key| entry(&deployment.labels, key)),
];

pub(crate) static DYNAMIC_PARTITIONS: [Field<DynamicPartition>; 2] = [
    Field::text("value", |partition| &partition.value),
    Field::time("create_time", |partition| partition.create_time),
];

#[cfg(test)]
mod tests {
    use servo_mesh::filter::Filter;

    use super::*;

    const NEW_YEAR: Option<prost_types::Timestamp> = Some(prost_types::Timestamp {
        seconds: 1_767_225_600,
        nanos: 0,
    });

    fn check<R>(record: &R, fields: &'static [Field<R>], filter: &str, expected: bool) {
        let parsed = Filter::parse(filter, fields).unwrap();
        assert_eq!(parsed.matches(record), expected, "{filter}");
    }

    #[test]
    fn assets_are_filtered_by_each_field() {
        let asset = AssetDefinition {
            key: "sales/orders".to_owned(),
            owners: vec!["ann".to_owned(), "bob".to_owned()],
            tags: [("tier".to_owned(), "gold".to_owned())].into(),
            pool: "db".to_owned(),
            ..AssetDefinition::default()
        };
        let check = |filter: &str, expected| check(&asset, &ASSETS, filter, expected);
        check("key = sales/orders AND namespace = sales", true);
        check("tags.tier = gold AND owners : bob", true);
        check("pool = db AND source = false AND tags.other != x", true);
        check("key = sales.returns", false);
        check("namespace = raw", false);
        check("tags.tier = silver", false);
        check("owners : eve", false);
        check("pool != db", false);
        check("source = true", false);
    }

    #[test]
    fn deployments_are_filtered_by_each_field() {
        let deployment = Deployment {
            code_version: "7".to_owned(),
            deploy_time: NEW_YEAR,
            labels: [("team".to_owned(), "core".to_owned())].into(),
            ..Deployment::default()
        };
        let check = |filter: &str, expected| check(&deployment, &DEPLOYMENTS, filter, expected);
        check("code_version = 7 AND labels.team = core", true);
        check("deploy_time <= 2026-01-01T00:00:00Z", true);
        check("code_version = 8", false);
        check("deploy_time < 2026-01-01T00:00:00Z", false);
        check("labels.team != core", false);
    }

    #[test]
    fn dynamic_partitions_are_filtered_by_each_field() {
        let partition = DynamicPartition {
            value: "de".to_owned(),
            create_time: NEW_YEAR,
        };
        let check =
            |filter: &str, expected| check(&partition, &DYNAMIC_PARTITIONS, filter, expected);
        check("value = de AND create_time >= 2026-01-01T00:00:00Z", true);
        check("value != de", false);
        check("create_time < 2026-01-01T00:00:00Z", false);
    }
}
