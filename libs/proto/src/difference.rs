//! The differences between two requests for a run, for a caller that used one run key for both.

use prost_reflect::{DynamicMessage, FieldDescriptor, ReflectMessage};
use servo_model::json::{JsonError, to_canonical};

use crate::fingerprint::{in_json, normal};
use crate::v1;

/// The maximum length of a value that is shown.
const JSON_BYTES_MAX: usize = 1_024;

/// The fields of a spec in which `after` differs from `before`, by name. Empty exactly when the
/// fingerprints are equal; of the configuration only the digest is shown.
pub fn spec_difference(
    before: &v1::RunSpec,
    after: &v1::RunSpec,
) -> Result<Vec<v1::FieldChange>, JsonError> {
    let (before, after) = (in_json(&normal(before)), in_json(&normal(after)));
    let mut changes = Vec::new();
    for field in before.descriptor().fields() {
        let (before, after) = (shown(&before, &field)?, shown(&after, &field)?);
        if before != after {
            let path = field.name().to_owned();
            changes.push(v1::FieldChange {
                path,
                before_json: truncated(before),
                after_json: truncated(after),
            });
        }
    }
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(changes)
}

/// The value of one field as JSON; empty if the field is not set.
fn shown(message: &DynamicMessage, field: &FieldDescriptor) -> Result<String, JsonError> {
    if !message.has_field(field) {
        return Ok(String::new());
    }
    let mut alone = DynamicMessage::new(message.descriptor());
    alone.set_field(field, message.get_field(field).into_owned());
    let object = to_canonical(&alone)?;
    let value = object.split_once(':').map_or("", |(_, value)| value);
    Ok(value.strip_suffix('}').unwrap_or(value).to_owned())
}

fn truncated(mut json: String) -> String {
    let end = (0..=JSON_BYTES_MAX.min(json.len()))
        .rev()
        .find(|end| json.is_char_boundary(*end));
    json.truncate(end.unwrap_or(0));
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(selection: &[&str], config: &str, priority: i32) -> v1::RunSpec {
        v1::RunSpec {
            selection: selection.iter().map(|s| (*s).to_owned()).collect(),
            config_json: config.to_owned(),
            priority,
            ..Default::default()
        }
    }

    #[test]
    fn differences_show_both_values() {
        let changes = spec_difference(
            &spec(&["a/b"], "", 0),
            &spec(&["a/c", "a/b"], r#"{"key":"hidden"}"#, 5),
        )
        .unwrap();
        let shown: Vec<(&str, &str, &str)> = changes
            .iter()
            .map(|change| {
                (
                    change.path.as_str(),
                    change.before_json.as_str(),
                    change.after_json.as_str(),
                )
            })
            .collect();
        assert_eq!((shown[0].0, shown[0].1), ("config_json", ""));
        assert!(!shown[0].2.contains("hidden"));
        assert_eq!(
            shown[1..],
            [
                ("priority", "", "5"),
                ("selection", r#"["a/b"]"#, r#"["a/b","a/c"]"#)
            ]
        );
    }

    #[test]
    fn equivalent_specs_do_not_differ() {
        assert_eq!(
            spec_difference(
                &spec(&["a", "b"], "{}", 1),
                &spec(&["b", "a", "b"], "{}", 1)
            ),
            Ok(vec![])
        );
    }

    #[test]
    fn long_values_are_truncated_at_a_character() {
        let long = "ä".repeat(JSON_BYTES_MAX);
        let changes = spec_difference(&spec(&[&long], "", 0), &spec(&[], "", 0)).unwrap();
        assert!(
            changes[0].before_json.len() <= JSON_BYTES_MAX
                && changes[0].before_json.starts_with("[\"ä")
        );
    }
}
