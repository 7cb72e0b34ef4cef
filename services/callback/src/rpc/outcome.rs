//! An outcome, doubted once at the door: whoever folds it later has no caller left to refuse it to.

use std::collections::BTreeSet;

use prost::Message;
use servo_mesh::{Error, Reason};
use servo_model::limits::{CHECKS_PER_ATTEMPT_MAX, EVENT_BYTES_MAX, MAPPED_ITEMS_PER_TASK_MAX};
use servo_model::{AssetKey, PartitionKey, WorkerId};
use servo_proto::v1;

/// 9999-12-31T23:59:59Z, the last second that `google.protobuf.Timestamp` may name.
const SECONDS_MAX: i64 = 253_402_300_799;
/// What the event holds beside the outcome: its trace, its frame.
const FRAME_BYTES_MAX: usize = 1_024;
const MESSAGE_BYTES_MAX: usize = 8 * 1_024;
/// As `TaskError.traceback` promises.
const TRACEBACK_BYTES_MAX: usize = 16 * 1_024;

/// Cleans what is written for people, so that no outcome is lost for a character, and refuses what nothing can be made of.
pub(super) fn check(finished: &mut v1::TaskFinished) -> Result<(), Error> {
    clean(finished);
    attempt(finished.task.as_ref(), &finished.worker_id)?;
    time("start_time", finished.start_time.as_ref())?;
    time("end_time", finished.end_time.as_ref())?;
    outputs(&finished.outputs)?;
    if let Some(items) = &finished.items {
        count_items(items)?;
    }
    let checks = finished.checks.len();
    if checks > CHECKS_PER_ATTEMPT_MAX {
        let told = format!("has {checks} entries; report at most {CHECKS_PER_ATTEMPT_MAX}");
        return Err(Error::bad_field("checks", told));
    }
    size(finished)
}

/// What starts and outcomes say alike.
pub(super) fn attempt(task: Option<&v1::TaskRef>, worker_id: &str) -> Result<(), Error> {
    if task.is_none() {
        return Err(Error::bad_field(
            "task",
            "is not given; the envelope names it",
        ));
    }
    if !worker_id.is_empty() && worker_id.parse::<WorkerId>().is_err() {
        return Err(Error::bad_field(
            "worker_id",
            "is no worker's id; give the one of the registration",
        ));
    }
    Ok(())
}

pub(super) fn time(field: &str, at: Option<&prost_types::Timestamp>) -> Result<(), Error> {
    let fits = |at: &prost_types::Timestamp| {
        (0..=SECONDS_MAX).contains(&at.seconds) && (0..1_000_000_000).contains(&at.nanos)
    };
    match at.is_none_or(fits) {
        true => Ok(()),
        false => Err(Error::bad_field(
            field,
            "is no time from 1970 to 9999; give seconds since 1970",
        )),
    }
}

/// Postgres keeps no NUL in texts, and what is told of an error is told in its first pages.
fn clean(finished: &mut v1::TaskFinished) {
    if let Some(error) = &mut finished.error {
        [
            &mut error.message,
            &mut error.r#type,
            &mut error.location,
            &mut error.hint,
            &mut error.traceback,
        ]
        .into_iter()
        .for_each(without_nul);
        cut(&mut error.message, MESSAGE_BYTES_MAX);
        cut(&mut error.traceback, TRACEBACK_BYTES_MAX);
    }
    without_nul(&mut finished.skip_reason);
    cut(&mut finished.skip_reason, MESSAGE_BYTES_MAX);
    for check in &mut finished.checks {
        [
            &mut check.name,
            &mut check.message,
            &mut check.actual,
            &mut check.expected,
        ]
        .into_iter()
        .for_each(without_nul);
    }
    finished
        .outputs
        .iter_mut()
        .for_each(|output| without_nul(&mut output.code_version));
}

fn without_nul(text: &mut String) {
    if text.contains('\0') {
        *text = text.replace('\0', "\u{fffd}");
    }
}

/// A few words as a row can hold them; nothing of nothing.
pub(super) fn short(text: &str, bytes_max: usize) -> Option<String> {
    let mut text = text.to_owned();
    without_nul(&mut text);
    cut(&mut text, bytes_max);
    (!text.is_empty()).then_some(text)
}

pub(super) fn cut(text: &mut String, bytes_max: usize) {
    text.truncate(text.floor_char_boundary(bytes_max));
}

fn outputs(outputs: &[v1::Output]) -> Result<(), Error> {
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
            let told =
                format!("names {key} a second time; an attempt makes one version of an asset");
            return Err(Error::bad_field(at("asset_key"), told));
        }
    }
    Ok(())
}

fn count_items(items: &v1::MappedItems) -> Result<(), Error> {
    let (count, given) = (items.count as usize, items.items_json.len());
    if !items.uri.is_empty() {
        let told = "is given, but items are taken from items_json alone; send them there";
        return Err(Error::bad_field("items.uri", told));
    }
    if count != given {
        let told = format!("is {count}, but items_json has {given} entries; give the same number");
        return Err(Error::bad_field("items.count", told));
    }
    if count > MAPPED_ITEMS_PER_TASK_MAX {
        let told = format!("is {count}; a task may name at most {MAPPED_ITEMS_PER_TASK_MAX} items");
        return Err(Error::bad_field("items.count", told));
    }
    Ok(())
}

/// The outcome is one event of the ledger.
fn size(finished: &v1::TaskFinished) -> Result<(), Error> {
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
    let told = format!(
        "the outcome has {bytes} bytes and may have {most}; shorten {field}, which has {of_it} of them"
    );
    Err(Error::new(Reason::MessageTooLarge, told.clone()).and_bad_field(field, told))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(asset_key: &str) -> v1::Output {
        v1::Output {
            asset_key: asset_key.to_owned(),
            ..Default::default()
        }
    }

    fn given() -> v1::TaskFinished {
        v1::TaskFinished {
            task: Some(v1::TaskRef::default()),
            ..Default::default()
        }
    }

    /// The field that is refused, or nothing.
    fn refused(change: impl FnOnce(&mut v1::TaskFinished)) -> String {
        let mut finished = given();
        change(&mut finished);
        check(&mut finished)
            .err()
            .map_or_else(String::new, |error| error.to_string())
    }

    fn items(count: u32, given: usize) -> Option<v1::MappedItems> {
        Some(v1::MappedItems {
            count,
            items_json: vec!["1".to_owned(); given],
            uri: String::new(),
        })
    }

    #[test]
    fn what_nothing_can_be_made_of_is_refused_by_its_field() {
        let at = |seconds, nanos| Some(prost_types::Timestamp { seconds, nanos });
        for (field, told) in [
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
                    f.outputs = vec![v1::Output {
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
                    f.items = Some(v1::MappedItems {
                        count: 1,
                        uri: "gs://x".to_owned(),
                        ..Default::default()
                    });
                }),
            ),
            (
                "checks:",
                refused(|f| {
                    f.checks = vec![v1::CheckResult::default(); CHECKS_PER_ATTEMPT_MAX + 1]
                }),
            ),
            (
                "the outcome has",
                refused(|f| {
                    let metadata = [("k".to_owned(), "v".repeat(EVENT_BYTES_MAX))].into();
                    f.outputs = vec![v1::Output {
                        metadata,
                        ..output("n/a")
                    }];
                }),
            ),
        ] {
            assert!(told.starts_with(field), "{field} {told}");
        }
    }

    #[test]
    fn an_error_is_never_lost_for_its_text() {
        let error = v1::TaskError {
            message: format!("a\0b{}", "é".repeat(MESSAGE_BYTES_MAX)),
            traceback: "x".repeat(1 << 20),
            ..Default::default()
        };
        let mut finished = v1::TaskFinished {
            error: Some(error),
            ..given()
        };
        check(&mut finished).unwrap();
        let error = finished.error.unwrap();
        assert!(
            error.message.starts_with("a\u{fffd}b") && error.message.len() <= MESSAGE_BYTES_MAX
        );
        assert_eq!(error.traceback.len(), TRACEBACK_BYTES_MAX);
    }

    #[test]
    fn what_is_in_order_passes() {
        let now = Some(prost_types::Timestamp {
            seconds: 1_800_000_000,
            nanos: 5,
        });
        assert_eq!(
            refused(|f| (f.start_time, f.items) = (now, items(2, 2))),
            ""
        );
        assert_eq!(
            refused(|f| f.outputs = vec![output("n/a"), output("n/b")]),
            ""
        );
    }
}
