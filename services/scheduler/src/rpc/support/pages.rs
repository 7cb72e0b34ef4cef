//! Page sizes and cursors.

use servo_mesh::Error;
use servo_mesh::paging::page_size;
use servo_model::Timestamp;

const PAGE_DEFAULT: usize = 20;
const PAGE_MAX: usize = 100;

/// The number of entries of a page, from the size that the caller requested.
pub(crate) fn size(requested: i32) -> Result<usize, Error> {
    page_size(requested, PAGE_DEFAULT, PAGE_MAX)
}

/// The time in a cursor, which is written in microseconds.
pub(crate) fn cursor_time(text: &str) -> Option<Timestamp> {
    text.parse().ok().map(Timestamp::from_unix_us)
}
