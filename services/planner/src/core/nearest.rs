//! What somebody who named something unknown may have meant.

/// Names that are more than this many edits away mean something else.
const EDITS_MAX: usize = 3;
const OFFERED_MAX: usize = 3;
/// Longer texts are no slips of the finger, and comparing them would cost too much.
const LENGTH_MAX: usize = 256;

/// `; did you mean …?` with the nearest names, or nothing.
pub(crate) fn did_you_mean<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> String {
    let offers = nearest(given, known);
    match offers.is_empty() {
        true => String::new(),
        false => format!("; did you mean {}?", offers.join(" or ")),
    }
}

fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    if given.len() > LENGTH_MAX {
        return Vec::new();
    }
    let mut near: Vec<(usize, &str)> = known
        .filter(|name| name.len().abs_diff(given.len()) <= EDITS_MAX)
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .filter(|(edits, _)| *edits <= EDITS_MAX)
        .collect();
    near.sort_unstable();
    near.into_iter()
        .take(OFFERED_MAX)
        .map(|(_, name)| format!("`{name}`"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_the_nearest_names_first() {
        let known = ["raw/orders", "raw/order", "raw/users", "x/y"];
        assert_eq!(
            did_you_mean("raw/ordres", known.into_iter()),
            "; did you mean `raw/orders` or `raw/order`?"
        );
        assert_eq!(did_you_mean("something/else", known.into_iter()), "");
        assert_eq!(did_you_mean(&"x".repeat(1_000_000), known.into_iter()), "");
    }
}
