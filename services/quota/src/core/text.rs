//! Checks texts that people write into settings.

/// Limit for names of pools and budgets; the same as for pool names in a manifest.
pub(crate) const NAME_BYTES_MAX: usize = 128;
const TEXT_BYTES_MAX: usize = 1024;

/// An invalid field and a sentence about it.
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

pub(crate) fn check_name(field: &str, text: &str) -> Result<(), BadField> {
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

/// Checks a description or a comment, which may be empty.
pub(crate) fn check_text(field: &str, text: &str) -> Result<(), BadField> {
    match text.len() {
        0..=TEXT_BYTES_MAX if !text.contains('\0') => Ok(()),
        length => Err(BadField::new(
            field,
            format!("has {length} bytes or a NUL; at most {TEXT_BYTES_MAX} plain ones are allowed"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_limited() {
        assert_eq!(check_name("pool", &"x".repeat(NAME_BYTES_MAX)), Ok(()));
        for wrong in ["", "a\nb", &"x".repeat(NAME_BYTES_MAX + 1)] {
            assert_eq!(check_name("pool", wrong).unwrap_err().field, "pool");
        }
        assert_eq!(check_text("comment", ""), Ok(()));
        assert_eq!(check_text("comment", "two\nlines"), Ok(()));
        for wrong in ["a\0b", &"x".repeat(TEXT_BYTES_MAX + 1)] {
            assert_eq!(check_text("comment", wrong).unwrap_err().field, "comment");
        }
    }
}
