//! Validating an outcome before it is forwarded, because a scheduler that folds a recorded outcome
//! later has no caller to reject it to.

use std::collections::BTreeSet;

use prost::Message;
use servo_mesh::{Error, Reason};
use servo_model::limits::{CHECKS_PER_ATTEMPT_MAX, EVENT_BYTES_MAX, MAPPED_ITEMS_PER_TASK_MAX};
use servo_model::{AssetKey, PartitionKey, WorkerId};
use servo_proto::v1 as pb;

/// 9999-12-31T23:59:59Z, the last second of `google.protobuf.Timestamp`.
const SECONDS_MAX: i64 = 253_402_300_799;
/// Size of the event without the outcome: trace and framing.
const FRAME_BYTES_MAX: usize = 1_024;
const MESSAGE_BYTES_MAX: usize = 8 * 1_024;
/// The limit that the documentation of `TaskError.traceback` promises.
const TRACEBACK_BYTES_MAX: usize = 16 * 1_024;

/// Cleans the texts, so that no outcome is rejected because of a character, and rejects fields that
/// cannot be used.
pub fn check_outcome(finished: &mut pb::TaskFinished) -> Result<(), Error> {
    clean(finished);
    check_attempt(finished.task.as_ref(), &finished.worker_id)?;
    check_time("start_time", finished.start_time.as_ref())?;
    check_time("end_time", finished.end_time.as_ref())?;
    check_outputs(&finished.outputs)?;
    if let Some(items) = &finished.items {
        check_items(items)?;
    }
    let checks = finished.checks.len();
    if checks > CHECKS_PER_ATTEMPT_MAX {
        let message = format!("has {checks} entries; report at most {CHECKS_PER_ATTEMPT_MAX}");
        return Err(Error::bad_field("checks", message));
    }
    check_size(finished)
}

/// Checks the fields that starts and outcomes have in common.
pub fn check_attempt(task: Option<&pb::TaskRef>, worker_id: &str) -> Result<(), Error> {
    if task.is_none() {
        return Err(Error::bad_field(
            "task",
            "is missing; the envelope contains it",
        ));
    }
    if !worker_id.is_empty() && worker_id.parse::<WorkerId>().is_err() {
        return Err(Error::bad_field(
            "worker_id",
            "is not a worker id; send the one of the registration",
        ));
    }
    Ok(())
}

pub fn check_time(field: &str, at: Option<&prost_types::Timestamp>) -> Result<(), Error> {
    let fits = |at: &prost_types::Timestamp| {
        (0..=SECONDS_MAX).contains(&at.seconds) && (0..1_000_000_000).contains(&at.nanos)
    };
    if at.is_none_or(fits) {
        return Ok(());
    }
    Err(Error::bad_field(
        field,
        "is not a time between 1970 and 9999; send seconds since 1970",
    ))
}

/// Replaces NUL, which Postgres cannot store, and truncates long texts.
fn clean(finished: &mut pb::TaskFinished) {
    if let Some(error) = &mut finished.error {
        [
            &mut error.message,
            &mut error.r#type,
            &mut error.location,
            &mut error.hint,
            &mut error.traceback,
        ]
        .into_iter()
        .for_each(replace_nul);
        truncate(&mut error.message, MESSAGE_BYTES_MAX);
        truncate(&mut error.traceback, TRACEBACK_BYTES_MAX);
    }
    replace_nul(&mut finished.skip_reason);
    truncate(&mut finished.skip_reason, MESSAGE_BYTES_MAX);
    for check in &mut finished.checks {
        [
            &mut check.name,
            &mut check.message,
            &mut check.actual,
            &mut check.expected,
        ]
        .into_iter()
        .for_each(replace_nul);
    }
    finished
        .outputs
        .iter_mut()
        .for_each(|output| replace_nul(&mut output.code_version));
}

fn replace_nul(text: &mut String) {
    if text.contains('\0') {
        *text = text.replace('\0', "\u{fffd}");
    }
}

/// Returns the text as a row can store it; `None` for an empty one.
pub fn short_text(text: &str, bytes_max: usize) -> Option<String> {
    let mut text = text.to_owned();
    replace_nul(&mut text);
    truncate(&mut text, bytes_max);
    (!text.is_empty()).then_some(text)
}

pub fn truncate(text: &mut String, bytes_max: usize) {
    text.truncate(text.floor_char_boundary(bytes_max));
}

fn check_outputs(outputs: &[pb::Output]) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    for (index, output) in outputs.iter().enumerate() {
        let at = |field: &str| format!("outputs[{index}].{field}");
        let key = AssetKey::parse_canonical(&output.asset_key);
        let key = key.map_err(|fault| Error::bad_field(at("asset_key"), fault.to_string()))?;
        if !output.partition_key.is_empty() {
            let partition = output.partition_key.parse::<PartitionKey>();
            partition.map_err(|fault| Error::bad_field(at("partition_key"), fault.to_string()))?;
        }
        if !seen.insert(key.canonical()) {
            let message =
                format!("names {key} a second time; an attempt produces one version of an asset");
            return Err(Error::bad_field(at("asset_key"), message));
        }
    }
    Ok(())
}

fn check_items(items: &pb::MappedItems) -> Result<(), Error> {
    let (count, given) = (items.count as usize, items.items_json.len());
    if !items.uri.is_empty() {
        let message = "is set, but items are read from items_json only; send them there";
        return Err(Error::bad_field("items.uri", message));
    }
    if count != given {
        let message =
            format!("is {count}, but items_json has {given} entries; send the same number");
        return Err(Error::bad_field("items.count", message));
    }
    if count > MAPPED_ITEMS_PER_TASK_MAX {
        let message =
            format!("is {count}; a task may name at most {MAPPED_ITEMS_PER_TASK_MAX} items");
        return Err(Error::bad_field("items.count", message));
    }
    Ok(())
}

/// Checks that the outcome fits into one event of the ledger.
fn check_size(finished: &pb::TaskFinished) -> Result<(), Error> {
    let (bytes, most) = (finished.encoded_len(), EVENT_BYTES_MAX - FRAME_BYTES_MAX);
    if bytes <= most {
        return Ok(());
    }
    let lengths = [
        (
            "outputs",
            finished
                .outputs
                .iter()
                .map(Message::encoded_len)
                .sum::<usize>(),
        ),
        (
            "checks",
            finished.checks.iter().map(Message::encoded_len).sum(),
        ),
        (
            "items",
            finished.items.as_ref().map_or(0, Message::encoded_len),
        ),
        (
            "sensor",
            finished.sensor.as_ref().map_or(0, Message::encoded_len),
        ),
        (
            "error",
            finished.error.as_ref().map_or(0, Message::encoded_len),
        ),
        (
            "usage",
            finished.usage.as_ref().map_or(0, Message::encoded_len),
        ),
    ];
    let (field, of_it) = lengths
        .into_iter()
        .max_by_key(|(_, bytes)| *bytes)
        .unwrap_or_default();
    let message = format!(
        "the outcome has {bytes} bytes, and {most} are allowed; shorten {field}, which has {of_it} of them"
    );
    Err(Error::new(Reason::MessageTooLarge, message.clone()).and_bad_field(field, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(asset_key: &str) -> pb::Output {
        pb::Output {
            asset_key: asset_key.to_owned(),
            ..Default::default()
        }
    }

    fn valid() -> pb::TaskFinished {
        pb::TaskFinished {
            task: Some(pb::TaskRef::default()),
            ..Default::default()
        }
    }

    /// Returns the error message, or an empty text.
    fn refused(change: impl FnOnce(&mut pb::TaskFinished)) -> String {
        let mut finished = valid();
        change(&mut finished);
        check_outcome(&mut finished)
            .err()
            .map_or_else(String::new, |error| error.to_string())
    }

    fn items(count: u32, given: usize) -> Option<pb::MappedItems> {
        Some(pb::MappedItems {
            count,
            items_json: vec!["1".to_owned(); given],
            uri: String::new(),
        })
    }

    #[test]
    fn invalid_field_is_rejected_by_name() {
        let at = |seconds, nanos| Some(prost_types::Timestamp { seconds, nanos });
        for (field, error) in [
            ("task:", refused(|f| f.task = None)),
            ("worker_id:", refused(|f| f.worker_id = "me\0".to_owned())),
            (
                "start_time:",
                refused(|f| f.start_time = at(-1_000_000_000_000, 0)),
            ),
            ("start_time:", refused(|f| f.start_time = at(i64::MAX, 0))),
            ("end_time:", refused(|f| f.end_time = at(1, -1))),
            (
                "outputs[0].asset_key:",
                refused(|f| f.outputs = vec![output("n/\0")]),
            ),
            (
                "outputs[1].asset_key:",
                refused(|f| f.outputs = vec![output("n/a"), output("n/a")]),
            ),
            (
                "outputs[0].partition_key:",
                refused(|f| {
                    f.outputs = vec![pb::Output {
                        partition_key: "\0".to_owned(),
                        ..output("n/a")
                    }];
                }),
            ),
            ("items.count:", refused(|f| f.items = items(u32::MAX, 0))),
            ("items.count:", refused(|f| f.items = items(1, 2))),
            ("items.count:", refused(|f| f.items = items(10_001, 10_001))),
            (
                "items.uri:",
                refused(|f| {
                    f.items = Some(pb::MappedItems {
                        count: 1,
                        uri: "gs://x".to_owned(),
                        ..Default::default()
                    });
                }),
            ),
            (
                "checks:",
                refused(|f| {
                    f.checks = vec![pb::CheckResult::default(); CHECKS_PER_ATTEMPT_MAX + 1]
                }),
            ),
            (
                "the outcome has",
                refused(|f| {
                    let metadata = [("k".to_owned(), "v".repeat(EVENT_BYTES_MAX))].into();
                    f.outputs = vec![pb::Output {
                        metadata,
                        ..output("n/a")
                    }];
                }),
            ),
        ] {
            assert!(error.starts_with(field), "{field} {error}");
        }
    }

    #[test]
    fn long_or_unprintable_error_text_is_shortened_not_rejected() {
        let error = pb::TaskError {
            message: format!("a\0b{}", "é".repeat(MESSAGE_BYTES_MAX)),
            traceback: "x".repeat(1 << 20),
            ..Default::default()
        };
        let mut finished = pb::TaskFinished {
            error: Some(error),
            ..valid()
        };
        check_outcome(&mut finished).unwrap();
        let error = finished.error.unwrap();
        assert!(
            error.message.starts_with("a\u{fffd}b") && error.message.len() <= MESSAGE_BYTES_MAX
        );
        assert_eq!(error.traceback.len(), TRACEBACK_BYTES_MAX);
    }

    #[test]
    fn valid_outcome_is_accepted() {
        let now = Some(prost_types::Timestamp {
            seconds: 1_800_000_000,
            nanos: 5,
        });
        assert_eq!(
            refused(|f| {
                f.start_time = now;
                f.items = items(2, 2);
            }),
            ""
        );
        assert_eq!(
            refused(|f| f.outputs = vec![output("n/a"), output("n/b")]),
            ""
        );
    }
}
