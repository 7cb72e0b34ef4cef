//! Messages of a bounded size: what is told comes in as many as it needs.

/// What one message carries at most. A receiver refuses one that is too large, and would be sent the same again.
pub(super) const ENTRIES_PER_MESSAGE_MAX: usize = 256;

/// Messages in the making, filled one after the other.
pub(super) struct Parts<M> {
    empty: M,
    filled: Vec<M>,
    /// How much the last of them carries.
    entries: usize,
}

impl<M: Clone> Parts<M> {
    /// `empty` is what every one of them begins as.
    pub(super) fn new(empty: M) -> Parts<M> {
        Parts {
            filled: vec![empty.clone()],
            empty,
            entries: 0,
        }
    }

    /// Puts so many entries into the last message, or into one more if it has no room.
    pub(super) fn add(&mut self, entries: usize, put: impl FnOnce(&mut M)) {
        if self.entries > 0 && self.entries + entries > ENTRIES_PER_MESSAGE_MAX {
            self.filled.push(self.empty.clone());
            self.entries = 0;
        }
        self.entries += entries;
        if let Some(last) = self.filled.last_mut() {
            put(last);
        }
    }

    /// At least one.
    pub(super) fn all(self) -> Vec<M> {
        self.filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entries: &[usize], expected: &[&[usize]]) {
        let mut parts = Parts::new(Vec::new());
        entries
            .iter()
            .for_each(|some| parts.add(*some, |part| part.push(*some)));
        assert_eq!(parts.all(), expected, "{entries:?}");
    }

    #[test]
    fn a_message_is_filled_before_the_next_begins() {
        check(&[], &[&[]]);
        check(&[1, 255], &[&[1, 255]]);
        check(&[1, 255, 1], &[&[1, 255], &[1]]);
        check(&[200, 100, 156], &[&[200], &[100, 156]]);
        check(&[256, 256], &[&[256], &[256]]);
    }
}
