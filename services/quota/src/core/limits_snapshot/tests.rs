use servo_proto::v1::{Budget, Pool, QuotaLimits};

use super::*;

const PLATFORM: &str = "-";

fn tenant(name: &str, tasks: u32) -> (TenantScope, TenantLimits) {
    let limits = QuotaLimits {
        max_concurrent_tasks: Some(tasks),
        ..Default::default()
    };
    let limits = TenantLimits {
        tenant: name.into(),
        limits: Some(limits),
        ..Default::default()
    };
    (name.parse().unwrap(), limits)
}

/// Heads with every shard at the same position.
fn at(position: i64) -> Heads {
    let position = Position::new(position).unwrap();
    Heads(Stream::Quota.shards().map(|_| position).collect())
}

fn limits_of(messages: &[WatchLimitsResponse]) -> Vec<(&str, u32)> {
    let tenants = messages.iter().flat_map(|message| &message.tenants);
    tenants
        .map(|t| {
            (
                t.tenant.as_str(),
                t.limits.unwrap().max_concurrent_tasks.unwrap(),
            )
        })
        .collect()
}

fn snapshot() -> LimitsSnapshot {
    let mut snapshot = LimitsSnapshot::default();
    snapshot.update(
        at(1),
        vec![tenant(PLATFORM, 9), tenant("a", 1), tenant("b", 2)],
    );
    snapshot
}

#[test]
fn a_watcher_gets_everything_first_and_then_only_changes() {
    let mut snapshot = snapshot();
    let (first, last_change) = snapshot.initial_messages("");
    assert_eq!(limits_of(&first), [(PLATFORM, 9), ("a", 1), ("b", 2)]);
    assert!(first.last().unwrap().caught_up);
    assert_eq!(
        snapshot.messages_since(last_change, ""),
        (Vec::new(), last_change)
    );
    assert!(snapshot.update(at(2), vec![tenant("a", 0)]));
    let (changes, last_change) = snapshot.messages_since(last_change, "");
    assert_eq!(limits_of(&changes), [("a", 0)]);
    assert!(!snapshot.update(at(3), vec![tenant("a", 0), tenant("b", 2)]));
    assert_eq!(snapshot.messages_since(last_change, "").0, Vec::new());
    let (late, _) = snapshot.initial_messages("");
    assert_eq!(limits_of(&late), [(PLATFORM, 9), ("b", 2), ("a", 0)]);
}

#[test]
fn a_token_resumes_where_the_stream_broke_off() {
    let mut snapshot = snapshot();
    let token = snapshot.keepalive().resume_token;
    assert_eq!(limits_of(&snapshot.initial_messages(&token).0), []);
    snapshot.update(at(2), vec![tenant("b", 3)]);
    assert_eq!(limits_of(&snapshot.initial_messages(&token).0), [("b", 3)]);
    let newest = snapshot
        .initial_messages(&token)
        .0
        .pop()
        .unwrap()
        .resume_token;
    assert_eq!(limits_of(&snapshot.initial_messages(&newest).0), []);
}

#[test]
fn a_token_of_another_instance_is_valid() {
    let token = snapshot().keepalive().resume_token;
    // The other instance began later, at position 2, and cannot know what changed in between.
    let mut other = LimitsSnapshot::default();
    other.update(at(2), vec![tenant(PLATFORM, 9), tenant("a", 1)]);
    assert_eq!(
        limits_of(&other.initial_messages(&token).0),
        [(PLATFORM, 9), ("a", 1)]
    );
    assert_eq!(limits_of(&other.initial_messages(&at(2).token()).0), []);
}

#[test]
fn an_invalid_token_starts_from_the_beginning() {
    let snapshot = snapshot();
    for token in ["x", "1", "1.1.1.1.1", "-", "7.7.7.7", "1.1.1.x"] {
        assert_eq!(
            limits_of(&snapshot.initial_messages(token).0).len(),
            3,
            "{token}"
        );
    }
}

#[test]
fn a_missed_change_of_the_defaults_sends_everything() {
    let mut snapshot = snapshot();
    let token = snapshot.keepalive().resume_token;
    snapshot.update(at(2), vec![tenant(PLATFORM, 8)]);
    assert_eq!(limits_of(&snapshot.initial_messages(&token).0).len(), 3);
}

#[test]
fn budgets_are_sent_again_at_every_resumption() {
    let mut snapshot = snapshot();
    let (scope, limits) = tenant("c", 3);
    let budgeted = TenantLimits {
        budgets: vec![Budget::default()],
        ..limits
    };
    snapshot.update(at(2), vec![(scope.clone(), budgeted)]);
    let token = snapshot.keepalive().resume_token;
    assert_eq!(limits_of(&snapshot.initial_messages(&token).0), [("c", 3)]);
    assert_eq!(snapshot.with_budgets(), [scope]);
}

#[test]
fn a_large_snapshot_is_split_and_only_the_last_message_is_caught_up() {
    let mut snapshot = LimitsSnapshot::default();
    let pool = Pool {
        pool: "p".into(),
        description: "x".repeat(1_000),
        ..Default::default()
    };
    let large = |n: u32| {
        let (scope, limits) = tenant(&format!("t{n}"), n);
        let pools = vec![pool.clone(); 900];
        (scope, TenantLimits { pools, ..limits })
    };
    snapshot.update(at(5), (0..4).map(large).collect());
    let (messages, _) = snapshot.initial_messages("");
    assert_eq!(limits_of(&messages).len(), 4);
    assert!(messages.len() > 1);
    for message in &messages {
        assert!(message.encoded_len() <= servo_model::limits::MESSAGE_BYTES_MAX);
    }
    let marks: Vec<(bool, &str)> = messages
        .iter()
        .map(|m| (m.caught_up, m.resume_token.as_str()))
        .collect();
    let (last, before) = marks.split_last().unwrap();
    assert_eq!(*last, (true, "5.5.5.5"));
    assert!(before.iter().all(|mark| *mark == (false, "")));
}
