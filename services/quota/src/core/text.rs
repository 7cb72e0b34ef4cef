//! Texts that people write into settings.

/// Names of pools and budgets; as long as a manifest may name a pool.
pub(crate) const NAME_BYTES_MAX: usize = 128;
const PROSE_BYTES_MAX: usize = 1024;

/// A field that is wrong, and the sentence about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadField {
    pub(crate) field: String,
    pub(crate) sentence: String,
}

impl BadField {
    pub(crate) fn new(field: impl Into<String>, sentence: impl Into<String>) -> BadField {
        BadField {
            field: field.into(),
            sentence: sentence.into(),
        }
    }
}

pub(crate) fn name(field: &str, text: &str) -> Result<(), BadField> {
    match text.len() {
        1..=NAME_BYTES_MAX if !text.contains(char::is_control) => Ok(()),
        length => Err(BadField::new(
            field,
            format!(
                "has {length} bytes or a control character; 1 to {NAME_BYTES_MAX} plain ones are allowed"
            ),
        )),
    }
}

/// A description or a comment; may be empty.
pub(crate) fn prose(field: &str, text: &str) -> Result<(), BadField> {
    match text.len() {
        0..=PROSE_BYTES_MAX if !text.contains('\0') => Ok(()),
        length => Err(BadField::new(
            field,
            format!(
                "has {length} bytes or a NUL; at most {PROSE_BYTES_MAX} plain ones are allowed"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_prose_have_bounds() {
        assert_eq!(name("pool", &"x".repeat(NAME_BYTES_MAX)), Ok(()));
        for wrong in ["", "a\nb", &"x".repeat(NAME_BYTES_MAX + 1)] {
            assert_eq!(name("pool", wrong).unwrap_err().field, "pool");
        }
        assert_eq!(prose("comment", ""), Ok(()));
        assert_eq!(prose("comment", "two\nlines"), Ok(()));
        for wrong in ["a\0b", &"x".repeat(PROSE_BYTES_MAX + 1)] {
            assert_eq!(prose("comment", wrong).unwrap_err().field, "comment");
        }
    }
}
