//! The event bodies of servo.v1 and the model's event types are the same list.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use servo_model::EventType;

#[test]
fn bodies_and_event_types_match() -> Result<()> {
    let event = servo_proto::descriptors()
        .get_message_by_name("servo.v1.Event")
        .context("no Event")?;
    let body = event
        .oneofs()
        .find(|o| o.name() == "body")
        .context("no oneof body")?;
    let in_proto: BTreeMap<u32, String> = body
        .fields()
        .filter_map(|f| Some((f.number(), f.kind().as_message()?.full_name().to_owned())))
        .collect();
    let in_model: BTreeMap<u32, String> = EventType::ALL
        .iter()
        .map(|t| (t.code() as u32, format!("servo.v1.{}", t.name())))
        .collect();
    assert_eq!(in_proto, in_model);
    Ok(())
}
