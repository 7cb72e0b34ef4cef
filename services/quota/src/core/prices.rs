//! Checks price lists.

use servo_proto::v1::PriceList;

use super::text::{BadField, check_name};

/// Currency of a platform without prices, where everything is free.
const CURRENCY_DEFAULT: &str = "USD";
const UNITS_MAX: usize = 100;

pub(crate) fn free() -> PriceList {
    PriceList {
        currency: CURRENCY_DEFAULT.to_owned(),
        ..PriceList::default()
    }
}

pub(crate) fn check(prices: &PriceList) -> Result<(), BadField> {
    check_currency("prices.currency", &prices.currency)?;
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
}
