//! Checks budgets and computes their periods.

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{ToSpan, Unit};
use servo_model::{AssetKey, Timestamp, WorkspaceId};
use servo_proto::v1::{Budget, BudgetAction, BudgetPeriod};

use super::prices::check_currency;
use super::text::{BadField, check_name};

pub(crate) const BUDGETS_PER_TENANT_MAX: u64 = 100;
const SELECTION_MAX: usize = 100;

/// Checks a budget and returns it as it is stored, without the fields that the service computes.
pub(crate) fn normalize(budget: &Budget, list_currency: &str) -> Result<Budget, BadField> {
    check_name("budget.name", &budget.name)?;
    check_workspace(&budget.workspace)?;
    check_selection(&budget.selection)?;
    check_currency("budget.currency", &budget.currency)?;
    if budget.currency != list_currency {
        let sentence = format!(
            "is {}, the price list's is {list_currency}; write that",
            budget.currency
        );
        return Err(BadField::new("budget.currency", sentence));
    }
    if i64::try_from(budget.limit_micros).is_err() {
        return Err(BadField::new(
            "budget.limit_micros",
            "is more than 9223372036854775807",
        ));
    }
    let period = parse_enum(budget.period, "budget.period", BudgetPeriod::try_from)?;
    if period == BudgetPeriod::Unspecified {
        return Err(BadField::new(
            "budget.period",
            "is missing; write DAY, MONTH or TOTAL",
        ));
    }
    let action = match parse_enum(budget.action, "budget.action", BudgetAction::try_from)? {
        BudgetAction::Unspecified => BudgetAction::Warn,
        action => action,
    };
    Ok(Budget {
        action: action.into(),
        budget_id: String::new(),
        version: 0,
        spent_micros: 0,
        period_end_time: None,
        ..budget.clone()
    })
}

/// Returns when the period that contains `now` began and when it ends. A budget without an end
/// counts from its creation.
pub(crate) fn period(
    budget: &Budget,
    counts_from: Timestamp,
    now: Timestamp,
) -> (Timestamp, Option<Timestamp>) {
    let day = now.to_jiff().to_zoned(TimeZone::UTC).date();
    let (first, next) = match budget.period() {
        BudgetPeriod::Day => (day, day.tomorrow().ok()),
        BudgetPeriod::Month => (
            day.first_of_month(),
            day.first_of_month().checked_add(1.month()).ok(),
        ),
        BudgetPeriod::Total | BudgetPeriod::Unspecified => {
            // Usage is recorded by the hour.
            let hour = counts_from.to_jiff().round(hour_down());
            return (hour.map_or(counts_from, Timestamp::from), None);
        }
    };
    let begin = |date: jiff::civil::Date| {
        let midnight = date.to_datetime(Time::midnight()).to_zoned(TimeZone::UTC);
        midnight.map(|zoned| Timestamp::from(zoned.timestamp()))
    };
    (
        begin(first).unwrap_or(now),
        next.and_then(|next| begin(next).ok()),
    )
}

fn hour_down() -> jiff::TimestampRound {
    jiff::TimestampRound::new()
        .smallest(Unit::Hour)
        .mode(jiff::RoundMode::Floor)
}

fn check_workspace(workspace: &str) -> Result<(), BadField> {
    let parsed: Result<WorkspaceId, _> = workspace.parse();
    match (workspace, parsed) {
        ("", _) | (_, Ok(_)) => Ok(()),
        (_, Err(error)) => Err(BadField::new("budget.workspace", error.to_string())),
    }
}

fn check_selection(selection: &[String]) -> Result<(), BadField> {
    if selection.len() > SELECTION_MAX {
        let sentence = format!(
            "has {} entries; at most {SELECTION_MAX} are allowed",
            selection.len()
        );
        return Err(BadField::new("budget.selection", sentence));
    }
    for (index, entry) in selection.iter().enumerate() {
        if AssetKey::parse_canonical(entry).is_err() {
            let sentence =
                "is not an asset key; write namespace/name, because tags are not supported yet";
            return Err(BadField::new(
                format!("budget.selection[{index}]"),
                sentence,
            ));
        }
    }
    Ok(())
}

fn parse_enum<T, E>(
    number: i32,
    field: &str,
    read: impl Fn(i32) -> Result<T, E>,
) -> Result<T, BadField> {
    read(number)
        .map_err(|_| BadField::new(field, format!("is {number}, which is not a known value")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget() -> Budget {
        Budget {
            name: "b".into(),
            currency: "EUR".into(),
            period: BudgetPeriod::Day.into(),
            ..Budget::default()
        }
    }

    #[test]
    fn invalid_fields_are_named() {
        let refuse = |budget: Budget, field: &str| {
            assert_eq!(normalize(&budget, "EUR").unwrap_err().field, field);
        };
        assert_eq!(
            normalize(&budget(), "EUR").unwrap().action(),
            BudgetAction::Warn
        );
        refuse(
            Budget {
                name: String::new(),
                ..budget()
            },
            "budget.name",
        );
        refuse(
            Budget {
                workspace: "No Slug".into(),
                ..budget()
            },
            "budget.workspace",
        );
        refuse(
            Budget {
                selection: vec!["n/a".into(), "tag:x".into()],
                ..budget()
            },
            "budget.selection[1]",
        );
        refuse(
            Budget {
                selection: vec!["n.a".into()],
                ..budget()
            },
            "budget.selection[0]",
        );
        refuse(
            Budget {
                selection: vec!["n/a".into(); SELECTION_MAX + 1],
                ..budget()
            },
            "budget.selection",
        );
        refuse(
            Budget {
                currency: "USD".into(),
                ..budget()
            },
            "budget.currency",
        );
        refuse(
            Budget {
                limit_micros: u64::MAX,
                ..budget()
            },
            "budget.limit_micros",
        );
        refuse(
            Budget {
                period: 0,
                ..budget()
            },
            "budget.period",
        );
        refuse(
            Budget {
                period: 9,
                ..budget()
            },
            "budget.period",
        );
        refuse(
            Budget {
                action: 9,
                ..budget()
            },
            "budget.action",
        );
    }

    fn time(text: &str) -> Timestamp {
        text.parse::<jiff::Timestamp>().unwrap().into()
    }

    #[test]
    fn periods_begin_at_midnight_in_utc() {
        let check = |kind: BudgetPeriod, now: &str, begins: &str, ends: Option<&str>| {
            let budget = Budget {
                period: kind.into(),
                ..Budget::default()
            };
            let (begin, end) = period(&budget, time("2026-01-15T10:20:30Z"), time(now));
            assert_eq!((begin, end), (time(begins), ends.map(time)));
        };
        let day = BudgetPeriod::Day;
        check(
            day,
            "2026-02-28T23:59:59Z",
            "2026-02-28T00:00:00Z",
            Some("2026-03-01T00:00:00Z"),
        );
        check(
            day,
            "2026-03-01T00:00:00Z",
            "2026-03-01T00:00:00Z",
            Some("2026-03-02T00:00:00Z"),
        );
        let month = BudgetPeriod::Month;
        check(
            month,
            "2026-12-31T12:00:00Z",
            "2026-12-01T00:00:00Z",
            Some("2027-01-01T00:00:00Z"),
        );
        check(
            BudgetPeriod::Total,
            "2026-12-31T12:00:00Z",
            "2026-01-15T10:00:00Z",
            None,
        );
    }
}
