//! Converts times between proto, store and core.

use jiff::Timestamp;
use servo_store::Timestamp as Stored;

use crate::core::budgets;
use crate::store::budgets::BudgetRow;

pub(crate) fn timestamp(time: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: time.as_second(),
        nanos: time.subsec_nanosecond(),
    }
}

pub(crate) fn to_stored(time: Timestamp) -> Stored {
    Stored::from_unix_us(time.as_microsecond())
}

/// Returns when a budget's period began and when it ends.
pub(crate) fn period(row: &BudgetRow, now: Timestamp) -> (Stored, Option<prost_types::Timestamp>) {
    let counts_from = Timestamp::from_microsecond(row.counts_from.unix_us()).unwrap_or(now);
    let (begin, end) = budgets::period(&row.budget, counts_from, now);
    (to_stored(begin), end.map(timestamp))
}
