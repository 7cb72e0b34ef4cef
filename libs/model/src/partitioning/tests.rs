use super::*;
use crate::grid::Grain;

pub(crate) fn time(name: &str, grain: Grain, zone: &str, start: &str) -> Dimension {
    Dimension::new(
        name,
        Values::Time(TimeGrid::new(grain, zone, start, "").unwrap()),
    )
    .unwrap()
}

pub(crate) fn fixed(name: &str, values: &[&str]) -> Dimension {
    let values = values
        .iter()
        .map(|value| PartitionValue::Text((*value).to_owned()));
    Dimension::new(name, Values::Fixed(ValueList::new(values))).unwrap()
}

pub(crate) fn partitioning(dimensions: Vec<Dimension>) -> Partitioning {
    Partitioning::new(dimensions).unwrap()
}

pub(crate) fn moment(now: &str) -> Moment {
    let tenants = ["b", "a"].map(|value| PartitionValue::Text(value.to_owned()));
    Moment {
        now: now.parse().unwrap(),
        sets: BTreeMap::from([("tenants".to_owned(), ValueList::new(tenants))]),
    }
}

fn daily() -> Partitioning {
    partitioning(vec![
        fixed("region", &["eu", "us"]),
        time("day", Grain::Day, "", "2026-01-01"),
    ])
}

fn texts(product: &Product) -> Vec<String> {
    product.keys().map(|key| key.unwrap().to_string()).collect()
}

#[test]
fn partitioning_is_the_product_of_existing_values() {
    let all = daily().all(&moment("2026-01-03T00:00:00Z")).unwrap();
    assert_eq!(
        texts(&all),
        [
            "day=d:2026-01-01,region=s:eu",
            "day=d:2026-01-01,region=s:us",
            "day=d:2026-01-02,region=s:eu",
            "day=d:2026-01-02,region=s:us",
        ]
    );
    assert!(
        daily()
            .all(&moment("2026-01-01T12:00:00Z"))
            .unwrap()
            .is_empty()
    );
    let latest = daily().latest(1, &moment("2026-01-03T00:00:00Z")).unwrap();
    assert_eq!(
        texts(&latest),
        [
            "day=d:2026-01-02,region=s:eu",
            "day=d:2026-01-02,region=s:us"
        ]
    );
}

#[test]
fn slices_restrict_single_dimensions() {
    let now = moment("2026-02-01T00:00:00Z");
    let eu = ["eu".to_owned()];
    let slices = daily().slices(
        &[
            ("region", ValueSelection::Values(&eu)),
            ("day", ValueSelection::Between("2026-01-30", "")),
        ],
        &now,
    );
    assert_eq!(
        texts(&slices.unwrap()),
        [
            "day=d:2026-01-30,region=s:eu",
            "day=d:2026-01-31,region=s:eu"
        ]
    );
    let refused =
        |stretches: &[(&str, ValueSelection<'_>)]| daily().slices(stretches, &now).unwrap_err();
    let invalid = |stretches: &[(&str, ValueSelection<'_>)]| {
        assert!(
            matches!(refused(stretches), PartitioningError::Invalid(_)),
            "{:?}",
            refused(stretches)
        );
    };
    invalid(&[("moon", ValueSelection::Between("", ""))]);
    invalid(&[
        ("day", ValueSelection::Between("", "")),
        ("day", ValueSelection::Between("", "")),
    ]);
    invalid(&[("day", ValueSelection::Between("2026-01-30", "2026-01-01"))]);
    invalid(&[("region", ValueSelection::Between("us", "eu"))]);
    invalid(&[("region", ValueSelection::Values(&["mars".to_owned()]))]);
    let beyond = refused(&[("day", ValueSelection::Between("", "2026-03-01"))]);
    assert!(
        matches!(beyond, PartitioningError::OutOfRange(_)),
        "{beyond}"
    );
}

#[test]
fn keys_are_checked_against_definition_and_time() {
    let now = moment("2026-01-03T00:00:00Z");
    let check = |key: &str| daily().check(&key.parse().unwrap(), &now);
    assert_eq!(check("day=d:2026-01-02,region=s:eu"), Ok(()));
    for out in [
        "day=d:2025-12-31,region=s:eu",
        "day=d:2026-01-03,region=s:eu",
    ] {
        assert!(
            matches!(check(out), Err(PartitioningError::OutOfRange(_))),
            "{out}"
        );
    }
    for wrong in [
        "day=d:2026-01-02",
        "day=s:x,region=s:eu",
        "day=d:2026-01-02,region=s:mars",
        "x=i:1",
    ] {
        assert!(
            matches!(check(wrong), Err(PartitioningError::Invalid(_))),
            "{wrong}"
        );
    }
}

#[test]
fn dynamic_values_keep_insertion_order() {
    let partitioning = partitioning(vec![
        Dimension::new(
            "t",
            Values::Dynamic {
                set: "tenants".to_owned(),
            },
        )
        .unwrap(),
    ]);
    let now = moment("2026-01-03T00:00:00Z");
    assert_eq!(texts(&partitioning.all(&now).unwrap()), ["t=s:b", "t=s:a"]);
    assert!(partitioning.check(&"t=s:c".parse().unwrap(), &now).is_err());
    assert!(partitioning.all(&Moment::default()).unwrap().is_empty());
}

#[test]
fn invalid_partitionings_are_rejected() {
    assert!(Partitioning::new(Vec::new()).is_err());
    assert!(Partitioning::new(vec![fixed("a", &["x"]), fixed("a", &["y"])]).is_err());
    assert!(Dimension::new("_map", Values::Dynamic { set: "s".into() }).is_err());
    assert!(Dimension::new("Day", Values::Dynamic { set: "s".into() }).is_err());
    let hours = partitioning(vec![time("h", Grain::Hour, "", "0001-01-01T00:00:00Z")]);
    assert!(matches!(
        hours.all(&moment("2026-01-01T00:00:00Z")),
        Err(PartitioningError::OutOfRange(_))
    ));
}

#[test]
fn numbering_finds_the_place_of_every_key() {
    let all = daily().all(&moment("2026-01-04T00:00:00Z")).unwrap();
    let numbering = all.numbering();
    let places: Vec<Option<u64>> = texts(&all).iter().map(|key| numbering.place(key)).collect();
    assert_eq!(places, (0..6).map(Some).collect::<Vec<_>>());
    assert_eq!(all.lengths(), [3, 2]);
    for stranger in [
        "",
        "day=d:2026-01-04,region=s:eu",
        "day=d:2026-01-01",
        "day=d:2026-01-01,region=s:eu,x=s:y",
    ] {
        assert_eq!(numbering.place(stranger), None, "{stranger}");
    }
}
