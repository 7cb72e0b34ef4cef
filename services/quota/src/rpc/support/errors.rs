//! Maps failures to the errors that callers receive.

use servo_mesh::Error;
pub(crate) use servo_service::errors::{append as append_error, store as store_error};

use crate::core::text::BadField;

pub(crate) fn field_error(field: BadField) -> Error {
    Error::bad_field(field.field, field.sentence)
}
