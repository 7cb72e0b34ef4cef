use jiff::Timestamp;
use jiff::civil::Date;
use proptest::prelude::*;

use super::*;

fn key(name: &str, value: PartitionValue) -> Result<PartitionKey, PartitionKeyError> {
    PartitionKey::new([(name.to_owned(), value)])
}

#[test]
fn reads_only_the_canonical_text() {
    for text in [
        "a=s:",
        "a=i:-9223372036854775808",
        "a=d:0001-01-01",
        "a=t:0001-01-01T00:00:00Z",
        "_a=s:%00,a=b:false",
    ] {
        assert_eq!(text.parse::<PartitionKey>().unwrap().to_string(), text);
    }
    let other_spellings = [
        "a=i:+1",
        "a=i:-0",
        "a=i:9223372036854775808",
        "a=d:20250115",
        "a=d:2025-1-15",
        "a=d:0000-01-01",
        "a=d:-000001-01-01",
        "a=d:2025-01-15T00:00",
        "a=t:2025-01-01T00:00:00z",
        "a=t:2025-01-01 00:00:00Z",
        "a=t:2025-01-01T00:00:00+00:00",
        "a=t:2025-01-01T01:00:00+01:00",
        "a=t:2025-01-01T00:00:00.5Z",
        "a=t:2025-01-01T00:00:00.0Z",
        "a=t:2016-12-31T23:59:60Z",
        "a=t:2025-01-01T00:00Z",
        "a=s:%41",
        "a=s:%",
        "a=s:%4",
        "a=s:%C3",
        "a=s:ü",
        "a=s:a:b",
        "a=s:a=b",
        "a=b:1",
        "a=i:",
        "=i:1",
        "1a=i:1",
        "a=i:1,",
        ",a=i:1",
        " a=i:1",
        "a=i:1, b=i:2",
        "_map=i:1",
    ];
    for text in other_spellings {
        assert!(text.parse::<PartitionKey>().is_err(), "{text}");
    }
}

#[test]
fn errors_name_the_fault() {
    let sentence = |text: &str| text.parse::<PartitionKey>().unwrap_err().to_string();
    assert_eq!(
        sentence("b=i:1,a=i:2"),
        "dimensions are sorted by name: write `a` before `b`"
    );
    assert_eq!(
        sentence("a=i:1,a=i:2"),
        "the dimension `a` appears twice; keep one"
    );
    assert_eq!(
        sentence("_map=i:1"),
        "the dimension name `_map` is reserved for mapped tasks; choose another"
    );
    assert_eq!(
        sentence("day=d:2025-02-30"),
        "the value of dimension `day` is refused: `2025-02-30` is not a date: write YYYY-MM-DD, from year 0001 on"
    );
}

#[test]
fn values_without_a_text_form_are_rejected() {
    let half_second = Timestamp::new(0, 500_000_000).unwrap();
    assert!(key("a", PartitionValue::Instant(half_second)).is_err());
    assert!(key("a", PartitionValue::Instant(Timestamp::MIN)).is_err());
    assert!(key("a", PartitionValue::Date(Date::MIN)).is_err());
    assert!(key("_map", PartitionValue::Integer(1)).is_err());
    assert_eq!(PartitionKey::new([]), Err(PartitionKeyError::Empty));
    let twice = ["a", "a"].map(|name| (name.to_owned(), PartitionValue::Bool(true)));
    assert_eq!(
        PartitionKey::new(twice),
        Err(PartitionKeyError::Repeated("a".into()))
    );
}

#[test]
fn size_is_limited() {
    let fits = PARTITION_KEY_BYTES_MAX - "a=s:".len();
    assert!(key("a", PartitionValue::Text("x".repeat(fits))).is_ok());
    assert_eq!(
        key("a", PartitionValue::Text("x".repeat(fits + 1))),
        Err(PartitionKeyError::TooLarge)
    );
    let many =
        (0..=PARTITION_DIMENSIONS_MAX).map(|i| (format!("d{i}"), PartitionValue::Bool(true)));
    assert_eq!(PartitionKey::new(many), Err(PartitionKeyError::TooLarge));
}

#[test]
fn sorts_by_value() {
    let number = |n| key("n", PartitionValue::Integer(n)).unwrap();
    assert!(number(-7) < number(2) && number(2) < number(10));
}

pub(crate) fn any_partition() -> impl Strategy<Value = PartitionKey> {
    let first_second = Timestamp::from_second(-62_135_596_800).unwrap();
    let value = prop_oneof![
        any::<String>().prop_map(|text| PartitionValue::Text(text.chars().take(20).collect())),
        any::<i64>().prop_map(PartitionValue::Integer),
        any::<bool>().prop_map(PartitionValue::Bool),
        (1i16..=9999, 1i8..=12, 1i8..=28)
            .prop_map(|(y, m, d)| PartitionValue::Date(jiff::civil::date(y, m, d))),
        (first_second.as_second()..=Timestamp::MAX.as_second())
            .prop_map(|second| PartitionValue::Instant(Timestamp::from_second(second).unwrap())),
    ];
    prop::collection::btree_map("[a-z][a-z0-9_]{0,5}", value, 1..4)
        .prop_map(|dimensions| PartitionKey::new(dimensions).unwrap())
}

proptest! {
    #[test]
    fn text_form_round_trips(key in any_partition()) {
        prop_assert_eq!(key.to_string().parse(), Ok(key));
    }

    #[test]
    fn parser_accepts_only_canonical_text(text in "[ab]=[sidbt]:[-+0-9A-Fa-f%TZ:.~,=]{0,12}") {
        if let Ok(key) = text.parse::<PartitionKey>() {
            prop_assert_eq!(key.to_string(), text);
        }
    }
}
