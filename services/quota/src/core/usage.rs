//! Sums the usage and cost of attempts by the hour in which they ended.

use std::collections::BTreeMap;

use servo_model::{TenantId, Timestamp};
use servo_proto::from_proto_time;
use servo_proto::v1::{PriceList, TaskFinished, Usage};

const HOUR_US: i64 = 3_600_000_000;
const HOUR_MS: u128 = 3_600_000;
const MB_PER_GB: u128 = 1_000;
const BYTES_PER_GB: u128 = 1_000_000_000;
/// Costs are summed in millionths of a micro.
const PICO_PER_MICRO: u128 = 1_000_000;
const MILLION: u128 = 1_000_000;

/// The dimensions of a sum.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UsageKey {
    pub(crate) tenant: TenantId,
    /// The beginning of the hour.
    pub(crate) hour: Timestamp,
    pub(crate) workspace: String,
    pub(crate) asset: String,
    pub(crate) pool: String,
    pub(crate) currency: String,
}

/// Sums never wrap: they saturate at the largest value of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UsageSums {
    pub(crate) attempts: i64,
    pub(crate) slot_ms: i64,
    pub(crate) cpu_ms: i64,
    pub(crate) memory_mb_ms: i64,
    pub(crate) gpu_ms: i64,
    pub(crate) memory_peak_bytes: i64,
    pub(crate) read_bytes: i64,
    pub(crate) written_bytes: i64,
    pub(crate) egress_bytes: i64,
    pub(crate) compute_pico: i64,
    pub(crate) storage_pico: i64,
    pub(crate) network_pico: i64,
    pub(crate) external_pico: i64,
}

/// A finished attempt, with the asset and pool from its plan.
#[derive(Debug)]
pub(crate) struct FinishedAttempt {
    pub(crate) tenant: TenantId,
    pub(crate) workspace: String,
    /// When the ledger recorded the outcome.
    pub(crate) recorded_at: Timestamp,
    pub(crate) asset: String,
    pub(crate) pool: String,
    pub(crate) outcome: TaskFinished,
}

/// Sums a batch of attempts. `prices` returns the price list of a tenant.
pub(crate) fn sum_usage<'p>(
    batch: Vec<FinishedAttempt>,
    prices: impl Fn(&TenantId) -> &'p PriceList,
) -> BTreeMap<UsageKey, UsageSums> {
    let mut sums: BTreeMap<UsageKey, UsageSums> = BTreeMap::new();
    for attempt in batch {
        let prices = prices(&attempt.tenant);
        let usage = attempt.outcome.usage.clone().unwrap_or_default();
        let slot_ms = slot_ms(&attempt.outcome);
        let key = UsageKey {
            tenant: attempt.tenant,
            hour: hour_of(attempt.recorded_at),
            workspace: attempt.workspace,
            asset: attempt.asset,
            pool: attempt.pool,
            currency: prices.currency.clone(),
        };
        sums.entry(key).or_default().add(slot_ms, &usage, prices);
    }
    sums
}

fn hour_of(time: Timestamp) -> Timestamp {
    time.plus_us(-time.unix_us().rem_euclid(HOUR_US))
}

impl UsageSums {
    fn add(&mut self, slot_ms: u64, usage: &Usage, prices: &PriceList) {
        let add_to = |sum: &mut i64, more: u64| *sum = sum.saturating_add(column(u128::from(more)));
        self.attempts = self.attempts.saturating_add(1);
        add_to(&mut self.slot_ms, slot_ms);
        add_to(&mut self.cpu_ms, usage.cpu_ms);
        add_to(&mut self.memory_mb_ms, usage.memory_mb_ms);
        add_to(&mut self.gpu_ms, usage.gpu_ms);
        self.memory_peak_bytes = self
            .memory_peak_bytes
            .max(column(usage.memory_peak_bytes.into()));
        add_to(&mut self.read_bytes, usage.read_bytes);
        add_to(&mut self.written_bytes, usage.written_bytes);
        add_to(&mut self.egress_bytes, usage.egress_bytes);
        let cost = cost(usage, prices);
        for (sum, more) in [
            (&mut self.compute_pico, cost.compute),
            (&mut self.storage_pico, cost.storage),
            (&mut self.network_pico, cost.network),
            (&mut self.external_pico, cost.external),
        ] {
            *sum = sum.saturating_add(column(more));
        }
    }
}

/// In millionths of a micro.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    compute: u128,
    storage: u128,
    network: u128,
    external: u128,
}

fn cost(usage: &Usage, prices: &PriceList) -> Cost {
    let price = |amount: u64, micros: u64, per: u128| {
        let micros = u128::from(amount).saturating_mul(u128::from(micros));
        micros
            .checked_mul(PICO_PER_MICRO)
            .map_or(u128::MAX, |pico| pico / per)
    };
    let external = usage.billed_units.iter().filter_map(|(unit, amount)| {
        prices
            .million_units_micros
            .get(unit)
            .map(|micros| price(*amount, *micros, MILLION))
    });
    Cost {
        compute: price(usage.cpu_ms, prices.cpu_hour_micros, HOUR_MS)
            .saturating_add(price(
                usage.memory_mb_ms,
                prices.memory_gb_hour_micros,
                HOUR_MS * MB_PER_GB,
            ))
            .saturating_add(price(usage.gpu_ms, prices.gpu_hour_micros, HOUR_MS)),
        storage: price(usage.read_bytes, prices.read_gb_micros, BYTES_PER_GB).saturating_add(
            price(usage.written_bytes, prices.written_gb_micros, BYTES_PER_GB),
        ),
        network: price(usage.egress_bytes, prices.egress_gb_micros, BYTES_PER_GB),
        external: external.fold(0, u128::saturating_add),
    }
}

/// Returns how long user code ran; 0 when a time is missing or invalid, or when they are in the
/// wrong order.
fn slot_ms(outcome: &TaskFinished) -> u64 {
    let ms = |time: Option<&prost_types::Timestamp>| Some(from_proto_time(time?)?.unix_ms());
    match (
        ms(outcome.start_time.as_ref()),
        ms(outcome.end_time.as_ref()),
    ) {
        (Some(start), Some(end)) => end.saturating_sub(start),
        _ => 0,
    }
}

fn column(amount: u128) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AN_HOUR_MS: u64 = 3_600_000;

    fn attempt(recorded_us: i64, usage: Usage) -> FinishedAttempt {
        let time = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let outcome = TaskFinished {
            start_time: time(10),
            end_time: time(12),
            usage: Some(usage),
            ..TaskFinished::default()
        };
        let text = str::to_owned;
        FinishedAttempt {
            tenant: "acme".parse().unwrap(),
            workspace: text("prod"),
            recorded_at: Timestamp::from_unix_us(recorded_us),
            asset: text("n/a"),
            pool: text(""),
            outcome,
        }
    }

    fn prices() -> PriceList {
        PriceList {
            currency: "EUR".into(),
            cpu_hour_micros: 86_400,
            memory_gb_hour_micros: 9_000,
            gpu_hour_micros: 1_260_000,
            read_gb_micros: 20_000,
            written_gb_micros: 30_000,
            egress_gb_micros: 120_000,
            million_units_micros: [("bytes".to_owned(), 5)].into(),
            version: 1,
        }
    }

    #[test]
    fn every_kind_of_usage_has_its_price() {
        let usage = Usage {
            cpu_ms: AN_HOUR_MS,
            memory_mb_ms: 2_000 * AN_HOUR_MS,
            gpu_ms: AN_HOUR_MS / 2,
            memory_peak_bytes: 7,
            read_bytes: 1_000_000_000,
            written_bytes: 2_000_000_000,
            egress_bytes: 500_000_000,
            billed_units: [("bytes".to_owned(), 3_000_000), ("unpriced".to_owned(), 9)].into(),
        };
        let micros = |micros: u128| micros * PICO_PER_MICRO;
        let expected = Cost {
            compute: micros(86_400 + 18_000 + 630_000),
            storage: micros(20_000 + 60_000),
            network: micros(60_000),
            external: micros(15),
        };
        assert_eq!(cost(&usage, &prices()), expected);
    }

    #[test]
    fn attempts_are_summed_by_hour_without_rounding_small_costs() {
        let tiny = || Usage {
            cpu_ms: 1,
            memory_peak_bytes: 5,
            ..Usage::default()
        };
        let larger = Usage {
            cpu_ms: 2,
            memory_peak_bytes: 3,
            ..Usage::default()
        };
        let batch = vec![
            attempt(HOUR_US + 1, tiny()),
            attempt(2 * HOUR_US - 1, larger),
            attempt(2 * HOUR_US, tiny()),
        ];
        let prices = prices();
        let sums = sum_usage(batch, |_| &prices);
        let summary: Vec<_> = sums
            .iter()
            .map(|(key, sum)| {
                (
                    key.hour.unix_us(),
                    sum.attempts,
                    sum.slot_ms,
                    sum.cpu_ms,
                    sum.memory_peak_bytes,
                )
            })
            .collect();
        assert_eq!(
            summary,
            [(HOUR_US, 2, 4_000, 3, 5), (2 * HOUR_US, 1, 2_000, 1, 5)]
        );
        // 86,400 micros per hour are 24,000 millionths of a micro per millisecond.
        assert_eq!(
            sums.values()
                .map(|sum| sum.compute_pico)
                .collect::<Vec<_>>(),
            [72_000, 24_000]
        );
    }

    #[test]
    fn sums_saturate_at_the_largest_column_value() {
        let overflowing = || Usage {
            cpu_ms: u64::MAX,
            memory_mb_ms: u64::MAX,
            egress_bytes: u64::MAX,
            billed_units: [("bytes".to_owned(), u64::MAX)].into(),
            ..Usage::default()
        };
        let prices = PriceList {
            cpu_hour_micros: u64::MAX,
            million_units_micros: [("bytes".to_owned(), u64::MAX)].into(),
            ..prices()
        };
        let sums = sum_usage(
            vec![attempt(0, overflowing()), attempt(0, overflowing())],
            |_| &prices,
        );
        let sum = sums.values().next().unwrap();
        assert_eq!(
            (sum.attempts, sum.cpu_ms, sum.compute_pico),
            (2, i64::MAX, i64::MAX)
        );
        assert_eq!((sum.egress_bytes, sum.external_pico), (i64::MAX, i64::MAX));
    }
}
