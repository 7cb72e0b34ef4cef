//! Splitting the content for a dispatcher into messages of bounded size.

/// How many entries one message contains. A receiver refuses a message that is too large, and a
/// retry would send the same one again.
pub(super) const ENTRIES_PER_MESSAGE_MAX: usize = 256;

/// Fills messages one after the other.
pub(super) struct Parts<M> {
    empty: M,
    filled: Vec<M>,
    /// How many entries the last message has.
    entries: usize,
}

impl<M: Clone> Parts<M> {
    /// Every message begins as a copy of `empty`.
    pub(super) fn new(empty: M) -> Parts<M> {
        Parts {
            filled: vec![empty.clone()],
            empty,
            entries: 0,
        }
    }

    /// Adds entries to the last message, or to a new one if they do not fit.
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

    /// Returns at least one message.
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
    fn a_message_is_filled_before_the_next_one() {
        check(&[], &[&[]]);
        check(&[1, 255], &[&[1, 255]]);
        check(&[1, 255, 1], &[&[1, 255], &[1]]);
        check(&[200, 100, 156], &[&[200], &[100, 156]]);
        check(&[256, 256], &[&[256], &[256]]);
    }
}
