//! Finds definitions that are accepted and have no effect yet, because no service evaluates them.

use servo_proto::v1::{AssetDefinition, Manifest, ManifestFault};

/// Returns one warning for each kind of definition, at the first one.
pub(crate) fn warnings(manifest: &Manifest) -> Vec<ManifestFault> {
    let kinds = [
        listed("schedules", manifest.schedules.len()).map(|found| {
            found.warning(
                "schedule",
                "schedules are not served yet, so none of them starts a run; start runs with `servo run`",
            )
        }),
        listed("sensors", manifest.sensors.len()).map(|found| {
            found.warning(
                "sensor",
                "sensors are not served yet, so none of them starts a run; start runs with `servo run`",
            )
        }),
        of_assets(manifest, "automation", |asset| asset.automation.is_some()).map(|found| {
            found.warning(
                "automation condition",
                "automation conditions are not served yet, so none of them starts a run; start runs with `servo run`",
            )
        }),
        of_assets(manifest, "freshness", |asset| asset.freshness.is_some()).map(|found| {
            found.warning(
                "freshness policy",
                "freshness policies are not served yet, so data never counts as too old; watch its age elsewhere",
            )
        }),
    ];
    kinds.into_iter().flatten().collect()
}

/// Definitions of one kind: the path of the first one and their number.
struct Found {
    first: String,
    count: usize,
}

impl Found {
    fn warning(self, kind: &str, consequence: &str) -> ManifestFault {
        let kind = match (self.count, kind.strip_suffix('y')) {
            (1, _) => kind.to_owned(),
            (_, Some(stem)) => format!("{stem}ies"),
            (_, None) => format!("{kind}s"),
        };
        ManifestFault {
            field: self.first,
            description: format!("{} {kind}: {consequence}", self.count),
        }
    }
}

fn listed(field: &str, count: usize) -> Option<Found> {
    let first = format!("{field}[0]");
    (count > 0).then_some(Found { first, count })
}

fn of_assets(
    manifest: &Manifest,
    field: &str,
    has: impl Fn(&AssetDefinition) -> bool,
) -> Option<Found> {
    let first = manifest.assets.iter().position(&has)?;
    Some(Found {
        first: format!("assets[{first}].{field}"),
        count: manifest.assets.iter().filter(|asset| has(asset)).count(),
    })
}

#[cfg(test)]
mod tests {
    use servo_proto::v1::{
        AutomationCondition, FreshnessPolicy, ScheduleDefinition, SensorDefinition,
    };

    use super::*;
    use crate::core::samples::{asset, manifest};

    #[test]
    fn each_unserved_kind_is_reported_once_with_its_number() {
        let mut given = manifest(vec![
            asset("n/a", &[]),
            asset("n/b", &[]),
            asset("n/c", &[]),
        ]);
        assert_eq!(warnings(&given), []);
        given.schedules = vec![ScheduleDefinition::default(); 2];
        given.sensors = vec![SensorDefinition::default()];
        given.assets[2].automation = Some(AutomationCondition::default());
        for asset in &mut given.assets[1..] {
            asset.freshness = Some(FreshnessPolicy::default());
        }
        let found = warnings(&given);
        let found: Vec<(&str, &str)> = found
            .iter()
            .filter_map(|w| Some((w.field.as_str(), w.description.split_once(':')?.0)))
            .collect();
        assert_eq!(
            found,
            [
                ("schedules[0]", "2 schedules"),
                ("sensors[0]", "1 sensor"),
                ("assets[2].automation", "1 automation condition"),
                ("assets[1].freshness", "2 freshness policies"),
            ]
        );
    }
}
