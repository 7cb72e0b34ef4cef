//! Suggests known names for an unknown one.

/// Names with a larger edit distance are not suggested.
const EDITS_MAX: usize = 3;
const SUGGESTIONS_MAX: usize = 3;
/// Longer texts are not typing errors, and comparing them would cost too much.
const LENGTH_MAX: usize = 256;

/// Returns `; did you mean …?` with the nearest names, or an empty string.
pub(crate) fn did_you_mean<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> String {
    let suggestions = nearest(unknown, known);
    if suggestions.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", suggestions.join(" or "))
    }
}

fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    if unknown.len() > LENGTH_MAX {
        return Vec::new();
    }
    let mut near: Vec<(usize, &str)> = known
        .filter(|name| name.len().abs_diff(unknown.len()) <= EDITS_MAX)
        .map(|name| (strsim::damerau_levenshtein(unknown, name), name))
        .filter(|(edits, _)| *edits <= EDITS_MAX)
        .collect();
    near.sort_unstable();
    near.into_iter()
        .take(SUGGESTIONS_MAX)
        .map(|(_, name)| format!("`{name}`"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_the_nearest_names_first() {
        let known = ["raw/orders", "raw/order", "raw/users", "x/y"];
        assert_eq!(
            did_you_mean("raw/ordres", known.into_iter()),
            "; did you mean `raw/orders` or `raw/order`?"
        );
        assert_eq!(did_you_mean("something/else", known.into_iter()), "");
        assert_eq!(did_you_mean(&"x".repeat(1_000_000), known.into_iter()), "");
    }
}
