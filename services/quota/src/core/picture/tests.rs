use servo_proto::v1::{Budget, Pool, QuotaLimits};

use super::*;

fn tenant(name: &str, tasks: u32) -> TenantLimits {
    let limits = QuotaLimits {
        max_concurrent_tasks: Some(tasks),
        ..Default::default()
    };
    TenantLimits {
        tenant: name.into(),
        limits: Some(limits),
        ..Default::default()
    }
}

/// As if every shard were at the same position.
fn at(position: i64) -> Heads {
    Heads(vec![
        position;
        usize::try_from(Stream::Quota.shards()).unwrap()
    ])
}

fn told(messages: &[WatchLimitsResponse]) -> Vec<(&str, u32)> {
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

fn picture() -> Picture {
    let mut picture = Picture::default();
    picture.take(
        at(1),
        vec![tenant(PLATFORM, 9), tenant("a", 1), tenant("b", 2)],
    );
    picture
}

#[test]
fn first_everything_then_only_what_changed() {
    let mut picture = picture();
    let (first, heard) = picture.first("");
    assert_eq!(told(&first), [(PLATFORM, 9), ("a", 1), ("b", 2)]);
    assert!(first.last().unwrap().caught_up);
    assert_eq!(picture.since(heard, ""), (Vec::new(), heard));
    assert!(picture.take(at(2), vec![tenant("a", 0)]));
    let (news, heard) = picture.since(heard, "");
    assert_eq!(told(&news), [("a", 0)]);
    assert!(!picture.take(at(3), vec![tenant("a", 0), tenant("b", 2)]));
    assert_eq!(picture.since(heard, "").0, Vec::new());
    let (late, _) = picture.first("");
    assert_eq!(told(&late), [(PLATFORM, 9), ("b", 2), ("a", 0)]);
}

#[test]
fn a_token_leads_on_where_the_stream_broke_off() {
    let mut picture = picture();
    let token = picture.reminder().resume_token;
    assert_eq!(told(&picture.first(&token).0), []);
    picture.take(at(2), vec![tenant("b", 3)]);
    assert_eq!(told(&picture.first(&token).0), [("b", 3)]);
    let newest = picture.first(&token).0.pop().unwrap().resume_token;
    assert_eq!(told(&picture.first(&newest).0), []);
}

#[test]
fn a_token_of_another_instance_means_the_same() {
    let token = picture().reminder().resume_token;
    // It began later, when everything stood at 2, and cannot know what changed in between.
    let mut other = Picture::default();
    other.take(at(2), vec![tenant(PLATFORM, 9), tenant("a", 1)]);
    assert_eq!(told(&other.first(&token).0), [(PLATFORM, 9), ("a", 1)]);
    assert_eq!(told(&other.first(&at(2).token()).0), []);
}

#[test]
fn what_is_no_place_in_this_ledger_begins_anew() {
    let picture = picture();
    for token in ["x", "1", "1.1.1.1.1", "-", "7.7.7.7", "1.1.1.x"] {
        assert_eq!(told(&picture.first(token).0).len(), 3, "{token}");
    }
}

#[test]
fn whoever_missed_a_change_of_the_defaults_begins_anew() {
    let mut picture = picture();
    let token = picture.reminder().resume_token;
    picture.take(at(2), vec![tenant(PLATFORM, 8)]);
    assert_eq!(told(&picture.first(&token).0).len(), 3);
}

#[test]
fn spent_budgets_are_told_again_at_every_resumption() {
    let mut picture = picture();
    let budgeted = TenantLimits {
        budgets: vec![Budget::default()],
        ..tenant("c", 3)
    };
    picture.take(at(2), vec![budgeted]);
    let token = picture.reminder().resume_token;
    assert_eq!(told(&picture.first(&token).0), [("c", 3)]);
    assert_eq!(picture.with_budgets(), ["c"]);
}

#[test]
fn a_large_picture_is_several_messages_and_only_the_last_is_caught_up() {
    let mut picture = Picture::default();
    let pool = Pool {
        pool: "p".into(),
        description: "x".repeat(1_000),
        ..Default::default()
    };
    let large = |n: u32| TenantLimits {
        pools: vec![pool.clone(); 900],
        ..tenant(&format!("t{n}"), n)
    };
    picture.take(at(5), (0..4).map(large).collect());
    let (messages, _) = picture.first("");
    assert_eq!(told(&messages).len(), 4);
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
