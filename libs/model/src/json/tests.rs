use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Serialize;

use super::*;

fn check(text: &str, canonical: &str) {
    assert_eq!(
        Json::parse(text).map(|value| value.to_string()).as_deref(),
        Ok(canonical),
        "{text}"
    );
}

fn check_refused(text: &str, place: usize, fault: Fault) {
    assert_eq!(
        Json::parse(text),
        Err(JsonError {
            location: Location::Byte(place),
            fault
        }),
        "{text}"
    );
}

#[test]
fn writes_one_spelling() {
    check(" [ ] ", "[]");
    check("{ \"b\" : 1 ,\n\"a\":{}}", r#"{"a":{},"b":1}"#);
    check(r#""\u00e9\/\ud83c\udf89""#, "\"é/🎉\"");
    check(r#""\u0000\u001f\b\f\r""#, r#""\u0000\u001f\b\f\r""#);
    check("-9223372036854775808", "-9223372036854775808");
    check("18446744073709551615", "18446744073709551615");
}

#[test]
fn errors_give_location_and_reason() {
    check_refused("[1, 2.5]", 4, Fault::Float);
    check_refused("1E3", 0, Fault::Float);
    check_refused("[-0]", 1, Fault::NegativeZero);
    check_refused("-0.0", 0, Fault::Float);
    check_refused("007", 0, Fault::LeadingZero);
    check_refused("-01", 0, Fault::LeadingZero);
    check_refused("18446744073709551616", 0, Fault::IntegerRange);
    check_refused(&"9".repeat(400), 0, Fault::IntegerRange);
    check_refused(r#"{"a":1,"\u0061":2}"#, 7, Fault::RepeatedKey("a".into()));
    check_refused(r#""\udc00""#, 1, Fault::LoneSurrogate);
    check_refused(r#""\ud800\u0041""#, 1, Fault::LoneSurrogate);
    check_refused(r#""\ud800""#, 1, Fault::LoneSurrogate);
    check_refused(r#""\x""#, 1, Fault::BadEscape);
    check_refused(r#""\u12""#, 1, Fault::BadEscape);
    check_refused("\"\\é\"", 1, Fault::BadEscape);
    check_refused(r#""\u+123""#, 1, Fault::BadEscape);
    check_refused("\"a\nb\"", 2, Fault::ControlCharacter);
    check_refused(
        "",
        0,
        Fault::Ends {
            expected: "a value",
        },
    );
    check_refused(
        "[1",
        2,
        Fault::Ends {
            expected: "`,` or `]`",
        },
    );
    check_refused("\"open", 5, Fault::Ends { expected: "`\"`" });
    check_refused(
        "-",
        1,
        Fault::Ends {
            expected: "a digit",
        },
    );
    check_refused(
        "[1,]",
        3,
        Fault::Unexpected {
            expected: "a value",
            found: ']',
        },
    );
    check_refused(
        "{1:2}",
        1,
        Fault::Unexpected {
            expected: "a key in quotes",
            found: '1',
        },
    );
    check_refused(
        "tru",
        0,
        Fault::Unexpected {
            expected: "a value",
            found: 't',
        },
    );
    check_refused(
        "\u{feff}1",
        0,
        Fault::Unexpected {
            expected: "a value",
            found: '\u{feff}',
        },
    );
    check_refused(
        "1 2",
        2,
        Fault::Unexpected {
            expected: "the end of the text",
            found: '2',
        },
    );
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    check(&nested(64), &nested(64));
    check_refused(&nested(65), 64, Fault::TooDeep);
    check_refused(&"[".repeat(1_000_000), 64, Fault::TooDeep);
}

#[test]
fn writes_serde_values() {
    #[derive(Serialize)]
    enum Shape {
        Unit,
        New(u8),
        Pair(i8, i8),
        Named { z: (), a: Option<char> },
    }
    let shapes = [
        Shape::Unit,
        Shape::New(1),
        Shape::Pair(2, -3),
        Shape::Named {
            z: (),
            a: Some('x'),
        },
    ];
    assert_eq!(
        to_canonical(&shapes).unwrap(),
        r#"["Unit",{"New":1},{"Pair":[2,-3]},{"Named":{"a":"x","z":null}}]"#
    );
}

#[test]
fn errors_name_the_path_in_a_serde_value() {
    let check = |refused: Result<String, JsonError>, sentence: &str| {
        assert_eq!(refused.unwrap_err().to_string(), sentence);
    };
    let float =
        "floats have no canonical form; write an integer of a smaller unit or a decimal string";
    check(to_canonical(&f64::NAN), &format!("at the root: {float}"));
    check(
        to_canonical(&BTreeMap::from([("a", vec![1.0, 2.0])])),
        &format!("at .a[0]: {float}"),
    );
    check(
        to_canonical(&[u128::MAX]),
        "at [0]: the integer is outside -9223372036854775808 to \
         18446744073709551615; write it as a string",
    );
    check(
        to_canonical(&BTreeMap::from([(1, 1)])),
        "at the root: an object's keys are strings",
    );
}

#[test]
fn repeated_keys_and_depth_are_rejected_in_serde_values() {
    struct Twice;
    impl Serialize for Twice {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([("a", 1), ("a", 2)])
        }
    }
    assert_eq!(
        to_canonical(&Twice).unwrap_err().fault,
        Fault::RepeatedKey("a".into())
    );

    let nested = |depth| (0..depth).fold(Json::Null, |inner, _| Json::Array(vec![inner]));
    assert_eq!(to_canonical(&nested(64)), Ok(nested(64).to_string()));
    assert_eq!(to_canonical(&nested(65)).unwrap_err().fault, Fault::TooDeep);
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i64>().prop_map(|n| Json::Integer(n.into())),
        any::<u64>().prop_map(|n| Json::Integer(n.into())),
        any::<String>().prop_map(Json::Text),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            prop::collection::btree_map(any::<String>(), inner, 0..6).prop_map(Json::Object),
        ]
    })
}

proptest! {
    #[test]
    fn text_form_round_trips(value in any_json()) {
        prop_assert_eq!(Json::parse(&value.to_string()), Ok(value.clone()));
        prop_assert_eq!(to_canonical(&value), Ok(value.to_string()));
    }

    #[test]
    fn serde_json_reads_the_same(value in any_json()) {
        let other: serde_json::Value = serde_json::from_str(&value.to_string()).unwrap();
        prop_assert_eq!(to_canonical(&other), Ok(value.to_string()));
        prop_assert_eq!(Json::parse(&serde_json::to_string_pretty(&other).unwrap()), Ok(value));
    }

    #[test]
    fn everything_the_parser_accepts_serde_json_accepts(text in r#"[\[\]{}",:\\/ud8c0-9eE+.tfnrulas \-]{0,24}"#) {
        if Json::parse(&text).is_ok() {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
        }
    }
}
