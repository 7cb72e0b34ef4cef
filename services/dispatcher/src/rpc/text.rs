//! Texts that callers write: what the database cannot keep is refused at the door.

use servo_mesh::Error;
use servo_model::limits::COMMENT_BYTES_MAX;

/// May be empty.
pub(super) fn comment(text: &str) -> Result<(), Error> {
    plain("comment", text, COMMENT_BYTES_MAX)
}

pub(super) fn plain(field: &str, text: &str, bytes_max: usize) -> Result<(), Error> {
    match text.len() {
        length if length <= bytes_max && !text.contains('\0') => Ok(()),
        length => {
            let told = format!("has {length} bytes or a NUL; write at most {bytes_max} plain ones");
            Err(Error::bad_field(field, told))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_bounds_and_no_nul() {
        assert!(comment("").is_ok() && comment(&"x".repeat(COMMENT_BYTES_MAX)).is_ok());
        for wrong in ["a\0b", &"x".repeat(COMMENT_BYTES_MAX + 1)] {
            assert!(
                comment(wrong)
                    .unwrap_err()
                    .to_string()
                    .starts_with("comment: has ")
            );
        }
    }
}
