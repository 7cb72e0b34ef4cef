use proptest::prelude::*;

use super::*;
use crate::ledger::AdmissionShard;
use crate::limits::SLUG_BYTES_MAX;

#[test]
fn ids_of_another_kind_are_rejected() {
    let run = RunId::from_bytes([7; 16]).to_string();
    assert!(run.starts_with("run_"));
    assert!(run.parse::<TaskId>().is_err());
    assert!(run.parse::<EventId>().is_err());
    let task = run.replace("run_", "task_");
    assert!(task.parse::<TaskId>().is_ok());
    assert_eq!(
        task.parse::<RunId>().unwrap_err().to_string(),
        format!("`{task}` is not a run id: write `run_` and 26 characters of a-z and 2-7")
    );
}

#[test]
fn slugs_are_dns_labels() {
    for slug in ["a", "acme", "acme-eu-1", &"a".repeat(SLUG_BYTES_MAX)] {
        assert_eq!(slug.parse::<TenantId>().unwrap().as_str(), slug);
    }
    for slug in [
        "",
        "1a",
        "-a",
        "a-",
        "Acme",
        "a_b",
        "a.b",
        "a:b",
        "é",
        "a/b",
        &"a".repeat(SLUG_BYTES_MAX + 1),
    ] {
        assert!(slug.parse::<TenantId>().is_err(), "{slug}");
        assert!(slug.parse::<WorkspaceId>().is_err(), "{slug}");
    }
}

#[test]
fn errors_shorten_long_input() {
    let refused = "X".repeat(10_000).parse::<TenantId>().unwrap_err();
    assert!(refused.to_string().len() < 250);
}

#[test]
fn ulids_follow_the_published_example() {
    // 01ARZ3NDEKTSV4RRFFQ69G5FAV is the example of the ULID specification; its time part is
    // 1469922850259 ms.
    let id: EventId = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
    assert_eq!(id.millis(), 1_469_922_850_259);
    let random = *id.as_bytes().last_chunk().unwrap();
    assert_eq!(EventId::new(1_469_922_850_259, random), id);
}

#[test]
fn ulids_have_one_spelling() {
    for text in [
        "01arz3ndektsv4rrffq69g5fav",
        "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
        "01ARZ3NDEKTSV4RRFFQ69G5FAI",
        "",
        "01ARZ3",
    ] {
        assert!(text.parse::<EventId>().is_err(), "{text}");
    }
    assert_eq!(
        "7ZZZZZZZZZZZZZZZZZZZZZZZZZ".parse(),
        Ok(WorkerId::from_bytes([0xff; 16]))
    );
}

#[test]
fn shards_follow_the_first_byte() {
    let shard =
        |first| RunId::from_bytes([first, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9]).shard();
    let shards = [0, 63, 64, 255].map(|first| shard(first).get());
    assert_eq!(shards, [0, 63, 0, 63]);
}

#[test]
fn tenants_spread_over_the_admission_shards() {
    // The first byte of sha256("acme") is 0x82.
    let acme: TenantId = "acme".parse().unwrap();
    assert_eq!(acme.admission_shard().index(), 2);
    let mut shards: Vec<AdmissionShard> = (0..400)
        .map(|i| {
            format!("tenant-{i}")
                .parse::<TenantId>()
                .unwrap()
                .admission_shard()
        })
        .collect();
    shards.sort_unstable();
    shards.dedup();
    assert_eq!(shards, AdmissionShard::all().collect::<Vec<_>>());
}

#[test]
fn all_tenants_are_written_as_a_dash() {
    let acme: TenantId = "acme".parse().unwrap();
    let one: TenantScope = "acme".parse().unwrap();
    assert_eq!(one, TenantScope::from(&acme));
    assert_eq!("-".parse(), Ok(TenantScope::All));
    assert_eq!(TenantScope::All.to_string(), "-");
    assert!(TenantScope::All.contains(&acme) && one.contains(&acme));
    assert!(!one.contains(&"globex".parse().unwrap()));
    assert!("".parse::<TenantScope>().is_err());
}

#[test]
fn workspace_scope_is_a_dash_or_names() {
    let some: WorkspaceScope = "test,prod".parse().unwrap();
    assert_eq!(some.to_string(), "prod,test");
    assert!(some.contains("prod") && !some.contains("dev") && !some.contains("-"));
    assert_eq!("-".parse(), Ok(WorkspaceScope::All));
    assert_eq!(WorkspaceScope::All.to_string(), "-");
    assert!(WorkspaceScope::All.contains("prod"));
    let none: WorkspaceScope = "".parse().unwrap();
    assert!(!none.contains("prod") && none.to_string().is_empty());
    assert!("prod,Test".parse::<WorkspaceScope>().is_err());
    assert!("prod,-".parse::<WorkspaceScope>().is_err());
}

proptest! {
    #[test]
    fn ids_round_trip(bytes: [u8; 16], millis in 0u64..1 << 48, random: [u8; 10]) {
        let run = RunId::from_bytes(bytes);
        prop_assert_eq!(run.to_string().parse(), Ok(run));
        let attempt = AttemptId::from_bytes(bytes);
        prop_assert_eq!(attempt.to_string().parse(), Ok(attempt));
        let event = EventId::new(millis, random);
        prop_assert_eq!(event.to_string().parse(), Ok(event));
        prop_assert_eq!(event.millis(), millis);
    }

    #[test]
    fn ulids_sort_by_time(early in 0u64..1 << 47, later in 1u64..1 << 47, a: [u8; 10], b: [u8; 10]) {
        let (first, second) = (EventId::new(early, a), EventId::new(early + later, b));
        prop_assert!(first < second && first.to_string() < second.to_string());
    }

    #[test]
    fn ids_round_trip_through_serde(bytes: [u8; 16]) {
        let run = RunId::from_bytes(bytes);
        let text = serde_json::to_string(&run).unwrap();
        prop_assert_eq!(&text, &format!("\"{run}\""));
        prop_assert_eq!(serde_json::from_str::<RunId>(&text).unwrap(), run);
        prop_assert!(serde_json::from_str::<EventId>(&text).is_err());
    }
}
