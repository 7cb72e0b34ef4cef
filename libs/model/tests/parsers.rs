//! Properties that every parser has for any text: it does not panic, and it writes back exactly the
//! text it parsed.

#![cfg(test)]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use proptest::prelude::*;
use servo_model::json::Json;
use servo_model::plan::{PlanFingerprint, PlanId};
use servo_model::presign::{CallbackPath, KeyRing, SigningKey};
use servo_model::request::RequestFingerprint;
use servo_model::states::TaskState;
use servo_model::{
    AssetKey, AttemptId, EventId, PartitionKey, QueueId, RunId, RunKey, TaskId, TaskKey, TenantId,
    WorkspaceId,
};

fn reads_back<T: FromStr<Err: Display> + Display + Debug>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => assert_eq!(value.to_string(), text),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn check(text: &str) {
    reads_back::<TenantId>(text);
    reads_back::<WorkspaceId>(text);
    reads_back::<RunId>(text);
    reads_back::<TaskId>(text);
    reads_back::<AttemptId>(text);
    reads_back::<EventId>(text);
    reads_back::<QueueId>(text);
    reads_back::<RunKey>(text);
    reads_back::<PartitionKey>(text);
    reads_back::<TaskKey>(text);
    reads_back::<CallbackPath>(text);
    reads_back::<TaskState>(text);
    reads_back::<PlanId>(text);
    reads_back::<PlanFingerprint>(text);
    reads_back::<RequestFingerprint>(text);
    assert_eq!(
        AssetKey::parse_canonical(text).map_or(text.to_owned(), |key| key.canonical()),
        text
    );
    if let Ok(value) = Json::parse(text) {
        assert_eq!(Json::parse(&value.to_string()), Ok(value));
    }
    let ring = KeyRing::new(SigningKey::new("k1", [7; 32]).unwrap(), []).unwrap();
    assert!(ring.verify("POST", text, 0).is_err());
}

/// Valid texts to be damaged, because random texts rarely get past the first character.
const SEEDS: [&str; 10] = [
    "run_44t4hsnmma47salboo3udjhgfm",
    "task_osww2k5u26uknjcnn6capov3ky",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "d_g2v2qqzw2axycr6g3n4s43cipq",
    "v1:sha256:6e7f2a99afa07b78eb2d5c3f3c101450854f6e846d004b892727644170cc6af7",
    "nightly#2",
    "raw/events[_map=i:3,day=d:2025-01-01,name=s:a%20b]:materialize",
    "hour=t:2025-03-30T01:00:00Z,n=i:-7,ok=b:true",
    r#"{"a":[1,-2,"\u00e9\ud83c\udf89"],"b":{"c":null,"d":true}}"#,
    "/v1/tenants/acme/workspaces/prod/runs/run_44t4hsnmma47salboo3udjhgfm/attempts/01ARZ3NDEKTSV4RRFFQ69G5FAV/heartbeat",
];

fn damaged() -> impl Strategy<Value = String> {
    (
        prop::sample::select(&SEEDS[..]),
        any::<prop::sample::Index>(),
        any::<char>(),
        0u8..4,
    )
        .prop_map(|(seed, at, character, damage)| {
            let mut characters: Vec<char> = seed.chars().collect();
            let at = at.index(characters.len());
            match damage {
                0 => characters[at] = character,
                1 => characters.insert(at, character),
                2 => drop(characters.remove(at)),
                _ => characters.insert(at, characters[at]),
            }
            characters.into_iter().collect()
        })
}

#[test]
fn every_seed_is_valid_for_some_parser() {
    SEEDS.into_iter().for_each(check);
    assert!(SEEDS[0].parse::<RunId>().is_ok() && SEEDS[1].parse::<TaskId>().is_ok());
    assert!(SEEDS[2].parse::<AttemptId>().is_ok() && SEEDS[3].parse::<QueueId>().is_ok());
    assert!(SEEDS[5].parse::<RunKey>().is_ok() && SEEDS[6].parse::<TaskKey>().is_ok());
    assert!(SEEDS[7].parse::<PartitionKey>().is_ok() && Json::parse(SEEDS[8]).is_ok());
    assert!(
        SEEDS[9].parse::<CallbackPath>().is_ok() && SEEDS[4].parse::<PlanFingerprint>().is_ok()
    );
}

/// These cases are cheap, so more are tried than by default, unless the environment sets a number.
fn many() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(4096),
    }
}

proptest! {
    #![proptest_config(many())]

    #[test]
    fn any_text(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn almost_valid_text(text in damaged()) {
        check(&text);
    }
}
