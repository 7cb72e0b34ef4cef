//! Limits in layers: the tenant's settings, over the platform's settings, over the configuration.
//! The platform's settings are those of [`TenantScope::All`](servo_model::TenantScope::All).

use prost_types::Duration;
use servo_proto::v1::QuotaLimits;

use super::text::BadField;

/// Removes the limit of a lower layer.
pub(crate) const NO_LIMIT: u32 = u32::MAX;
const PPM: u32 = 1_000_000;
/// Zero is not allowed, because fair shares divide by the weight; a cap of 0 stops a tenant.
const WEIGHT_MILLIS_MAX: u32 = 1_000_000;
const RUN_SECONDS_MAX: i64 = 366 * 24 * 3600;

/// Returns the limits that apply when `set` overrides `inherited`. An unset cap in the result does
/// not exist.
pub(crate) fn effective(set: &QuotaLimits, inherited: &QuotaLimits) -> QuotaLimits {
    unset_removed_caps(overlay(set, inherited))
}

/// Checks the limits that a tenant or an operator sets; `inherited` applies where they set nothing.
pub(crate) fn check(limits: &QuotaLimits, inherited: &QuotaLimits) -> Result<(), BadField> {
    at_most("backfill_floor_ppm", limits.backfill_floor_ppm, PPM)?;
    at_most("backfill_cap_ppm", limits.backfill_cap_ppm, PPM)?;
    at_most("weight_millis", limits.weight_millis, WEIGHT_MILLIS_MAX)?;
    if limits.weight_millis == Some(0) {
        let sentence = "is 0; write 1 or more, and stop a tenant by max_concurrent_tasks = 0";
        return Err(bad("weight_millis", sentence));
    }
    check_duration(limits.max_run_duration.as_ref())?;
    check_shares(&overlay(limits, inherited))
}

fn check_duration(duration: Option<&Duration>) -> Result<(), BadField> {
    match duration {
        None => Ok(()),
        Some(Duration {
            seconds: 1..=RUN_SECONDS_MAX,
            nanos: 0..1_000_000_000,
        }) => Ok(()),
        Some(other) => Err(bad(
            "max_run_duration",
            format!(
                "is {} s; 1 to {RUN_SECONDS_MAX} s are allowed",
                other.seconds
            ),
        )),
    }
}

fn check_shares(limits: &QuotaLimits) -> Result<(), BadField> {
    match (limits.backfill_floor_ppm, limits.backfill_cap_ppm) {
        (Some(floor), Some(cap)) if floor > cap => Err(bad(
            "backfill_floor_ppm",
            format!(
                "is {floor}, more than backfill_cap_ppm, which is {cap}; lower it or raise the cap"
            ),
        )),
        _ => Ok(()),
    }
}

fn at_most(field: &str, value: Option<u32>, max: u32) -> Result<(), BadField> {
    match value.filter(|value| *value > max) {
        Some(value) => Err(bad(field, format!("is {value}; at most {max} is allowed"))),
        None => Ok(()),
    }
}

fn bad(field: &str, sentence: impl Into<String>) -> BadField {
    BadField::new(format!("limits.{field}"), sentence)
}

/// Returns the upper layer, with values of the lower one where the upper sets none.
pub(crate) fn overlay(upper: &QuotaLimits, lower: &QuotaLimits) -> QuotaLimits {
    QuotaLimits {
        max_concurrent_tasks: upper.max_concurrent_tasks.or(lower.max_concurrent_tasks),
        max_concurrent_runs: upper.max_concurrent_runs.or(lower.max_concurrent_runs),
        max_queued_runs: upper.max_queued_runs.or(lower.max_queued_runs),
        max_queued_tasks: upper.max_queued_tasks.or(lower.max_queued_tasks),
        max_daily_runs: upper.max_daily_runs.or(lower.max_daily_runs),
        max_run_duration: upper.max_run_duration.or(lower.max_run_duration),
        max_tasks_per_run: upper.max_tasks_per_run.or(lower.max_tasks_per_run),
        max_backfill_concurrency: upper
            .max_backfill_concurrency
            .or(lower.max_backfill_concurrency),
        weight_millis: upper.weight_millis.or(lower.weight_millis),
        backfill_floor_ppm: upper.backfill_floor_ppm.or(lower.backfill_floor_ppm),
        backfill_cap_ppm: upper.backfill_cap_ppm.or(lower.backfill_cap_ppm),
        max_calls_per_minute: upper.max_calls_per_minute.or(lower.max_calls_per_minute),
    }
}

/// Unsets caps that mean no limit, because services count only where there is a cap.
fn unset_removed_caps(mut limits: QuotaLimits) -> QuotaLimits {
    for cap in [
        &mut limits.max_concurrent_tasks,
        &mut limits.max_concurrent_runs,
        &mut limits.max_queued_runs,
        &mut limits.max_queued_tasks,
        &mut limits.max_daily_runs,
        &mut limits.max_tasks_per_run,
        &mut limits.max_backfill_concurrency,
        &mut limits.max_calls_per_minute,
    ] {
        *cap = cap.filter(|cap| *cap != NO_LIMIT);
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(max: u32) -> QuotaLimits {
        QuotaLimits {
            max_concurrent_tasks: Some(max),
            ..QuotaLimits::default()
        }
    }

    #[test]
    fn the_upper_layer_wins_and_zero_is_a_limit() {
        let check = |tenant: QuotaLimits, platform: QuotaLimits, expected: Option<u32>| {
            let inherited = overlay(&platform, &tasks(100));
            assert_eq!(
                effective(&tenant, &inherited).max_concurrent_tasks,
                expected
            );
        };
        let nothing = QuotaLimits::default();
        check(nothing, nothing, Some(100));
        check(nothing, tasks(7), Some(7));
        check(tasks(0), tasks(7), Some(0));
        check(tasks(NO_LIMIT), tasks(7), None);
        check(nothing, tasks(NO_LIMIT), None);
    }

    #[test]
    fn invalid_fields_are_named() {
        let nothing = QuotaLimits::default();
        let refuse = |limits: QuotaLimits, field: &str| {
            assert_eq!(check(&limits, &nothing).unwrap_err().field, field);
        };
        let duration = |seconds, nanos| QuotaLimits {
            max_run_duration: Some(Duration { seconds, nanos }),
            ..nothing
        };
        assert_eq!(check(&duration(1, 0), &nothing), Ok(()));
        refuse(duration(0, 5), "limits.max_run_duration");
        refuse(duration(-1, 0), "limits.max_run_duration");
        refuse(duration(1, -1), "limits.max_run_duration");
        refuse(duration(i64::MAX, 0), "limits.max_run_duration");
        refuse(
            QuotaLimits {
                weight_millis: Some(0),
                ..nothing
            },
            "limits.weight_millis",
        );
        refuse(
            QuotaLimits {
                weight_millis: Some(NO_LIMIT),
                ..nothing
            },
            "limits.weight_millis",
        );
        refuse(
            QuotaLimits {
                backfill_cap_ppm: Some(PPM + 1),
                ..nothing
            },
            "limits.backfill_cap_ppm",
        );
        refuse(
            QuotaLimits {
                backfill_floor_ppm: Some(PPM + 1),
                ..nothing
            },
            "limits.backfill_floor_ppm",
        );
    }

    #[test]
    fn the_floor_is_compared_with_the_effective_cap() {
        let cap = QuotaLimits {
            backfill_cap_ppm: Some(500_000),
            ..QuotaLimits::default()
        };
        let floor = |ppm| QuotaLimits {
            backfill_floor_ppm: Some(ppm),
            ..QuotaLimits::default()
        };
        assert_eq!(check(&floor(500_000), &cap), Ok(()));
        assert_eq!(
            check(&floor(500_001), &cap).unwrap_err().field,
            "limits.backfill_floor_ppm"
        );
    }
}
