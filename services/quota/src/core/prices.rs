//! Checks price lists.

use servo_proto::v1::PriceList;

use super::text::{BadField, check_name};

/// Currency of a platform without prices, where everything is free.
const CURRENCY_DEFAULT: &str = "USD";
const UNITS_MAX: usize = 100;
/// A billion per unit, far above every real price. Costs are products of prices and usage, so a
/// bound keeps them within the numbers of Postgres.
const PRICE_MICROS_MAX: u64 = 1_000_000_000_000_000;

pub(crate) fn free() -> PriceList {
    PriceList {
        currency: CURRENCY_DEFAULT.to_owned(),
        ..PriceList::default()
    }
}

pub(crate) fn check(prices: &PriceList) -> Result<(), BadField> {
    check_currency("prices.currency", &prices.currency)?;
    amounts(prices).try_for_each(|(field, micros)| check_amount(field, micros))?;
    if prices.million_units_micros.len() > UNITS_MAX {
        let sentence = format!(
            "has {} units; at most {UNITS_MAX} are allowed",
            prices.million_units_micros.len()
        );
        return Err(BadField::new("prices.million_units_micros", sentence));
    }
    prices
        .million_units_micros
        .keys()
        .try_for_each(|unit| check_name("prices.million_units_micros", unit))
}

fn amounts(prices: &PriceList) -> impl Iterator<Item = (&'static str, u64)> {
    let named = [
        ("prices.cpu_hour_micros", prices.cpu_hour_micros),
        ("prices.memory_gb_hour_micros", prices.memory_gb_hour_micros),
        ("prices.gpu_hour_micros", prices.gpu_hour_micros),
        ("prices.read_gb_micros", prices.read_gb_micros),
        ("prices.written_gb_micros", prices.written_gb_micros),
        ("prices.egress_gb_micros", prices.egress_gb_micros),
    ];
    let units = prices.million_units_micros.values();
    let units = units.map(|micros| ("prices.million_units_micros", *micros));
    named.into_iter().chain(units)
}

fn check_amount(field: &str, micros: u64) -> Result<(), BadField> {
    if micros > PRICE_MICROS_MAX {
        let sentence = format!("is {micros}; at most {PRICE_MICROS_MAX} is allowed");
        return Err(BadField::new(field, sentence));
    }
    Ok(())
}

pub(crate) fn check_currency(field: &str, text: &str) -> Result<(), BadField> {
    if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase()) {
        Ok(())
    } else {
        Err(BadField::new(
            field,
            "is not an ISO 4217 code; write three capital letters, such as EUR",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_need_a_currency_and_a_limited_number_of_named_units() {
        assert_eq!(check(&free()), Ok(()));
        for wrong in ["", "eur", "EURO", "E1R"] {
            let prices = PriceList {
                currency: wrong.into(),
                ..PriceList::default()
            };
            assert_eq!(
                check(&prices).unwrap_err().field,
                "prices.currency",
                "{wrong}"
            );
        }
        let units = |count: usize| (0..count).map(|n| (format!("u{n}"), 1)).collect();
        assert_eq!(
            check(&PriceList {
                million_units_micros: units(UNITS_MAX),
                ..free()
            }),
            Ok(())
        );
        let many = PriceList {
            million_units_micros: units(UNITS_MAX + 1),
            ..free()
        };
        assert_eq!(
            check(&many).unwrap_err().field,
            "prices.million_units_micros"
        );
        let nameless = PriceList {
            million_units_micros: [(String::new(), 1)].into(),
            ..free()
        };
        assert_eq!(
            check(&nameless).unwrap_err().field,
            "prices.million_units_micros"
        );
    }

    #[test]
    fn prices_are_bounded() {
        let of_cpu = |cpu_hour_micros| PriceList {
            cpu_hour_micros,
            ..free()
        };
        assert_eq!(check(&of_cpu(PRICE_MICROS_MAX)), Ok(()));
        for too_high in [PRICE_MICROS_MAX + 1, u64::MAX] {
            let refused = check(&of_cpu(too_high)).unwrap_err();
            assert_eq!(refused.field, "prices.cpu_hour_micros");
            let of_units = PriceList {
                million_units_micros: [("bytes".to_owned(), too_high)].into(),
                ..free()
            };
            let refused = check(&of_units).unwrap_err();
            assert_eq!(refused.field, "prices.million_units_micros");
        }
    }
}
