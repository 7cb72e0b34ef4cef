//! Compares a manifest with the one deployed before it.

use std::collections::{BTreeMap, BTreeSet};

use servo_model::json::Json;
use servo_proto::v1::{
    AssetDefinition, ChangeKind, DefinitionChange, DefinitionKind, DeploymentDiff, FieldChange,
    Manifest,
};

use crate::core::{canonical, settings};

/// A value in a diff is truncated to this length.
const VALUE_BYTES_MAX: usize = 1024;
/// Once a diff holds this much text of values, further changes are reported by path only.
const VALUES_BYTES_MAX: usize = 1024 * 1024;

/// `before` is `None` for the first deployment.
pub(crate) fn diff(before: Option<&Manifest>, after: &Manifest) -> DeploymentDiff {
    let empty = Manifest::default();
    let before = before.unwrap_or(&empty);
    let mut builder = DiffBuilder {
        changes: Vec::new(),
        bytes_left: VALUES_BYTES_MAX,
    };
    let assets =
        |manifest: &Manifest| by_name(&manifest.assets, |asset| &asset.key, "AssetDefinition");
    builder.compare(DefinitionKind::Asset, &assets(before), &assets(after));
    let schedules =
        |manifest: &Manifest| by_name(&manifest.schedules, |s| &s.name, "ScheduleDefinition");
    builder.compare(
        DefinitionKind::Schedule,
        &schedules(before),
        &schedules(after),
    );
    let sensors = |manifest: &Manifest| by_name(&manifest.sensors, |s| &s.name, "SensorDefinition");
    builder.compare(DefinitionKind::Sensor, &sensors(before), &sensors(after));
    mark_stale(&mut builder.changes, before, after);
    DeploymentDiff {
        changes: builder.changes,
        stale_partitions: 0,
    }
}

/// Returns the assets whose data becomes stale, each with the code version that is current from now
/// on.
pub(crate) fn assets_made_stale(diff: &DeploymentDiff, after: &Manifest) -> Vec<(String, String)> {
    let stale: BTreeSet<&str> = diff
        .changes
        .iter()
        .filter(|change| change.makes_stale)
        .map(|change| change.key.as_str())
        .collect();
    let assets = after
        .assets
        .iter()
        .filter(|asset| stale.contains(asset.key.as_str()));
    assets
        .map(|asset| (asset.key.clone(), settings::code_version(asset, after)))
        .collect()
}

fn by_name<T: prost::Message>(
    items: &[T],
    name: impl Fn(&T) -> &String,
    message: &str,
) -> BTreeMap<String, Json> {
    let json = |item: &T| canonical::json(item, message).unwrap_or(Json::Null);
    items
        .iter()
        .map(|item| (name(item).clone(), json(item)))
        .collect()
}

struct DiffBuilder {
    changes: Vec<DefinitionChange>,
    bytes_left: usize,
}

impl DiffBuilder {
    fn compare(
        &mut self,
        kind: DefinitionKind,
        old: &BTreeMap<String, Json>,
        new: &BTreeMap<String, Json>,
    ) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let (change, fields) = match (old.get(name), new.get(name)) {
                (None, _) => (ChangeKind::Added, Vec::new()),
                (_, None) => (ChangeKind::Removed, Vec::new()),
                (Some(old), Some(new)) if old == new => continue,
                (Some(old), Some(new)) => {
                    let mut fields = Vec::new();
                    self.fields(String::new(), Some(old), Some(new), &mut fields);
                    (ChangeKind::Changed, fields)
                }
            };
            self.changes.push(DefinitionChange {
                kind: kind.into(),
                key: name.clone(),
                change: change.into(),
                fields,
                makes_stale: false,
            });
        }
    }

    /// Descends as long as both sides have the same shape.
    fn fields(
        &mut self,
        path: String,
        old: Option<&Json>,
        new: Option<&Json>,
        found: &mut Vec<FieldChange>,
    ) {
        match (old, new) {
            (Some(old), Some(new)) if old == new => {}
            (Some(Json::Object(old)), Some(Json::Object(new))) => {
                let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
                for name in names {
                    let dot = if path.is_empty() { "" } else { "." };
                    self.fields(
                        format!("{path}{dot}{name}"),
                        old.get(name),
                        new.get(name),
                        found,
                    );
                }
            }
            (Some(Json::Array(old)), Some(Json::Array(new))) if old.len() == new.len() => {
                for (index, (old, new)) in old.iter().zip(new).enumerate() {
                    self.fields(format!("{path}[{index}]"), Some(old), Some(new), found);
                }
            }
            (old, new) => {
                let (before_json, after_json) = (self.value(old), self.value(new));
                found.push(FieldChange {
                    path,
                    before_json,
                    after_json,
                });
            }
        }
    }

    fn value(&mut self, value: Option<&Json>) -> String {
        let mut text = value.map(ToString::to_string).unwrap_or_default();
        text.truncate(text.floor_char_boundary(VALUE_BYTES_MAX.min(self.bytes_left)));
        self.bytes_left -= text.len();
        text
    }
}

/// Marks assets whose code version changed as stale, including those whose definition did not
/// change.
fn mark_stale(changes: &mut Vec<DefinitionChange>, before: &Manifest, after: &Manifest) {
    let versions = |manifest: &Manifest| -> BTreeMap<String, String> {
        let version = |asset: &AssetDefinition| settings::code_version(asset, manifest);
        manifest
            .assets
            .iter()
            .map(|asset| (asset.key.clone(), version(asset)))
            .collect()
    };
    let (old, new) = (versions(before), versions(after));
    let is_new = |key: &String| {
        old.get(key)
            .is_some_and(|before| Some(before) != new.get(key))
    };
    let mut stale: BTreeSet<&String> = new.keys().filter(|key| is_new(key)).collect();
    for change in changes
        .iter_mut()
        .filter(|change| change.kind() == DefinitionKind::Asset)
    {
        change.makes_stale = stale.remove(&change.key);
    }
    let by_code_alone = |key: &String| DefinitionChange {
        kind: DefinitionKind::Asset.into(),
        key: key.clone(),
        change: ChangeKind::Changed.into(),
        fields: vec![FieldChange {
            path: "code_version".to_owned(),
            before_json: Json::Text(old[key].clone()).to_string(),
            after_json: Json::Text(new[key].clone()).to_string(),
        }],
        makes_stale: true,
    };
    changes.extend(stale.into_iter().map(by_code_alone));
    changes.sort_by(|a, b| (a.kind, &a.key).cmp(&(b.kind, &b.key)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(assets: &[(&str, &str, i32)]) -> Manifest {
        let asset = |(key, version, priority): &(&str, &str, i32)| AssetDefinition {
            key: (*key).to_owned(),
            code_version: (*version).to_owned(),
            priority: *priority,
            ..Default::default()
        };
        Manifest {
            assets: assets.iter().map(asset).collect(),
            ..Default::default()
        }
    }

    #[test]
    fn reports_added_removed_and_changed_assets() {
        let before = manifest(&[("n/a", "1", 0), ("n/b", "1", 1), ("n/c", "1", 0)]);
        let after = manifest(&[("n/b", "2", 3), ("n/c", "1", 0), ("n/d", "1", 0)]);
        let changes = diff(Some(&before), &after).changes;
        let summary: Vec<_> = changes
            .iter()
            .map(|c| (c.key.as_str(), c.change(), c.makes_stale))
            .collect();
        assert_eq!(
            summary,
            [
                ("n/a", ChangeKind::Removed, false),
                ("n/b", ChangeKind::Changed, true),
                ("n/d", ChangeKind::Added, false),
            ]
        );
        let field = |path: &str, before: &str, after: &str| FieldChange {
            path: path.to_owned(),
            before_json: before.to_owned(),
            after_json: after.to_owned(),
        };
        assert_eq!(
            changes[1].fields,
            [
                field("code_version", "\"1\"", "\"2\""),
                field("priority", "1", "3")
            ]
        );
        assert!(diff(Some(&after), &after).changes.is_empty());
        assert_eq!(diff(None, &after).changes.len(), 3);
    }

    #[test]
    fn a_new_code_version_makes_assets_stale_without_a_definition_change() {
        let of = |version: &str| Manifest {
            code_version: version.to_owned(),
            ..manifest(&[("n/a", "", 0), ("n/own", "7", 0)])
        };
        let diff = diff(Some(&of("1")), &of("2"));
        let [change] = diff.changes.as_slice() else {
            panic!("{:?}", diff.changes)
        };
        assert_eq!((change.key.as_str(), change.makes_stale), ("n/a", true));
        let field = &change.fields[0];
        assert_eq!(
            (field.path.as_str(), field.after_json.as_str()),
            ("code_version", "\"2\"")
        );
        assert_eq!(
            assets_made_stale(&diff, &of("2")),
            [("n/a".to_owned(), "2".to_owned())]
        );
    }

    #[test]
    fn large_values_are_truncated() {
        let with = |text: &str| Manifest {
            assets: vec![AssetDefinition {
                description: text.to_owned(),
                ..Default::default()
            }],
            ..Default::default()
        };
        let changes = diff(Some(&with(&"ä".repeat(5000))), &with(&"ö".repeat(5000))).changes;
        assert!(changes[0].fields[0].before_json.len() <= VALUE_BYTES_MAX);
    }
}
