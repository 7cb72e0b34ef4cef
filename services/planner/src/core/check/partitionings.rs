//! Converts the partitionings of assets from manifest messages to [`Partitioning`].

use servo_model::grid::{Grain, TimeGrid};
use servo_model::limits::STATIC_VALUES_MAX;
use servo_model::partition::{PartitionKey, PartitionValue, ValueKind};
use servo_model::partitioning::{Dimension, Partitioning, ValueList, Values};
use servo_proto::v1::partition_dimension::Values as DeclaredValues;
use servo_proto::v1::{Manifest, PartitionDimension, PartitionsDefinition, StaticValues};

use super::{Faults, values};

/// Returns one entry per asset; `None` for unpartitioned assets and for invalid partitionings.
pub(super) fn check(manifest: &Manifest, faults: &mut Faults) -> Vec<Option<Partitioning>> {
    let read = |(index, asset): (usize, &servo_proto::v1::AssetDefinition)| {
        let partitions = asset
            .partitions
            .as_ref()
            .filter(|partitions| !partitions.dimensions.is_empty())?;
        partitioning(faults, &format!("assets[{index}].partitions"), partitions)
    };
    manifest.assets.iter().enumerate().map(read).collect()
}

fn partitioning(
    faults: &mut Faults,
    path: &str,
    declared: &PartitionsDefinition,
) -> Option<Partitioning> {
    let mut dimensions = Vec::with_capacity(declared.dimensions.len());
    for (index, dimension) in declared.dimensions.iter().enumerate() {
        dimensions.extend(read_dimension(
            faults,
            &format!("{path}.dimensions[{index}]"),
            dimension,
        ));
    }
    if dimensions.len() < declared.dimensions.len() {
        return None;
    }
    Partitioning::new(dimensions)
        .map_err(|error| faults.add(path, error.to_string()))
        .ok()
}

fn read_dimension(
    faults: &mut Faults,
    path: &str,
    declared: &PartitionDimension,
) -> Option<Dimension> {
    let values = match &declared.values {
        None => {
            faults.add(path, "has no values; say time, fixed or dynamic");
            return None;
        }
        Some(DeclaredValues::Time(time)) => {
            let Some(grain) = i16::try_from(time.grain).ok().and_then(Grain::from_code) else {
                faults.add(
                    format!("{path}.time.grain"),
                    "is missing; write HOUR, DAY, WEEK or MONTH",
                );
                return None;
            };
            let grid = TimeGrid::new(grain, &time.time_zone, &time.start, &time.end);
            let report = |error: servo_model::grid::GridError| {
                faults.add(format!("{path}.time.{}", error.field), error.sentence);
            };
            Values::Time(grid.map_err(report).ok()?)
        }
        Some(DeclaredValues::Fixed(fixed)) => {
            Values::Fixed(fixed_values(faults, &format!("{path}.fixed"), fixed)?)
        }
        Some(DeclaredValues::Dynamic(dynamic)) => {
            values::name(faults, format!("{path}.dynamic.set"), &dynamic.set);
            Values::Dynamic {
                set: dynamic.set.clone(),
            }
        }
    };
    let dimension = Dimension::new(&declared.name, values);
    dimension
        .map_err(|error| faults.add(format!("{path}.name"), error.to_string()))
        .ok()
}

fn fixed_values(faults: &mut Faults, path: &str, declared: &StaticValues) -> Option<ValueList> {
    let count = declared.values.len();
    if count == 0 || count > STATIC_VALUES_MAX {
        faults.add(
            format!("{path}.values"),
            format!("has {count} values; 1 to {STATIC_VALUES_MAX} are allowed"),
        );
        return None;
    }
    let kind = match declared.r#type {
        0 => Some(ValueKind::Text),
        number => i16::try_from(number).ok().and_then(ValueKind::from_code),
    };
    let Some(kind) = kind else {
        faults.add(format!("{path}.type"), "is not in the list of value types");
        return None;
    };
    let mut parsed = Vec::with_capacity(count);
    for (index, text) in declared.values.iter().enumerate() {
        match read_value(kind, text) {
            Ok(value) => parsed.push(value),
            Err(sentence) => faults.add(format!("{path}.values[{index}]"), sentence),
        }
    }
    let list = ValueList::new(parsed);
    if list.values().len() < count {
        faults.add(
            format!("{path}.values"),
            "holds values that are wrong or repeated; keep each once",
        );
    }
    Some(list)
}

/// Builds a key from the value, because that proves that the value is valid in a key.
fn read_value(kind: ValueKind, text: &str) -> Result<PartitionValue, String> {
    let value = PartitionValue::from_text(kind, text).map_err(|fault| fault.to_string())?;
    match PartitionKey::new([("d".to_owned(), value.clone())]) {
        Ok(_) => Ok(value),
        Err(error) => Err(error.to_string()),
    }
}
