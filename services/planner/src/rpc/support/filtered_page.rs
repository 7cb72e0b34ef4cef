//! Pages of lists that are filtered after they are read.

/// Rows that are read for one page. A page with few matches returns a token and continues there.
const ROWS_PER_PAGE_MAX: usize = 2_000;

/// A page of matching rows, filled from batches of rows that are identified by a number.
pub(crate) struct FilteredPage<T> {
    size: usize,
    found: Vec<T>,
    rows_read: usize,
    /// The number behind which the next batch begins.
    pub(crate) from: i64,
    more: bool,
}

impl<T> FilteredPage<T> {
    pub(crate) fn new(size: usize, from: i64) -> FilteredPage<T> {
        FilteredPage {
            size,
            found: Vec::new(),
            rows_read: 0,
            from,
            more: true,
        }
    }

    pub(crate) fn wants_more(&self) -> bool {
        self.more && self.found.len() < self.size && self.rows_read < ROWS_PER_PAGE_MAX
    }

    /// Returns how many rows to read: one more than are used, to know whether more rows follow.
    pub(crate) fn batch_size(&self) -> i64 {
        self.size as i64 + 1
    }

    pub(crate) fn add(&mut self, rows: Vec<(i64, T)>, matches: impl Fn(&T) -> bool) {
        let count = rows.len();
        for (index, (number, row)) in rows.into_iter().take(self.size).enumerate() {
            self.from = number;
            self.rows_read += 1;
            self.more = index + 1 < count;
            self.found.extend(matches(&row).then_some(row));
            if self.found.len() == self.size {
                return;
            }
        }
        self.more = count > self.size;
    }

    /// Returns the matching rows and where the next page begins.
    pub(crate) fn finish(self) -> (Vec<T>, Option<i64>) {
        (self.found, self.more.then_some(self.from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_contain_every_matching_row_once() {
        let read = |from: i64, count: i64| {
            (from + 1..=(from + count).min(10))
                .map(|n| (n, n))
                .collect()
        };
        let mut seen = Vec::new();
        let mut from = Some(0);
        while let Some(begin) = from {
            let mut page = FilteredPage::new(2, begin);
            while page.wants_more() {
                let rows = read(page.from, page.batch_size());
                page.add(rows, |n| n % 3 == 0 || *n == 10);
            }
            let (found, next) = page.finish();
            assert!(found.len() <= 2);
            seen.extend(found);
            from = next;
        }
        assert_eq!(seen, [3, 6, 9, 10]);
    }
}
