//! How two requests for a run differ, for whoever used one key for both.

use prost_reflect::{DynamicMessage, FieldDescriptor, ReflectMessage};
use servo_model::json::{JsonError, to_canonical};

use crate::fingerprint::{in_json, normal};
use crate::v1;

/// What is shown of a value.
const JSON_BYTES_MAX: usize = 1_024;

/// The fields of a spec in which `after` is not `before`, by name. Empty exactly when the fingerprints are equal; the
/// configuration is shown by its digest only.
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
                before_json: cut(before),
                after_json: cut(after),
            });
        }
    }
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(changes)
}

/// One field's value as JSON; empty when it is not given.
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

fn cut(mut json: String) -> String {
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
    fn names_what_differs_with_both_values() {
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
    fn what_means_the_same_does_not_differ() {
        assert_eq!(
            spec_difference(
                &spec(&["a", "b"], "{}", 1),
                &spec(&["b", "a", "b"], "{}", 1)
            ),
            Ok(vec![])
        );
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let long = "ä".repeat(JSON_BYTES_MAX);
        let changes = spec_difference(&spec(&[&long], "", 0), &spec(&[], "", 0)).unwrap();
        assert!(
            changes[0].before_json.len() <= JSON_BYTES_MAX
                && changes[0].before_json.starts_with("[\"ä")
        );
    }
}
