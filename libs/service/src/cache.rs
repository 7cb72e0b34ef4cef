//! A cache of values that are expensive to read or to compute, bounded by their total weight.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard};

use lru::LruCache;

/// Evicts the least recently used entries while all together are too heavy. The newest entry stays
/// even if it alone is too heavy, because it is about to be used.
///
/// Values are cloned out, so they are usually an `Arc`.
#[derive(Debug)]
pub struct Cache<K: Hash + Eq, V> {
    entries: Mutex<Entries<K, V>>,
    weight_max: usize,
}

#[derive(Debug)]
struct Entries<K: Hash + Eq, V> {
    by_key: LruCache<K, Weighed<V>>,
    weight: usize,
}

#[derive(Debug)]
struct Weighed<V> {
    value: V,
    weight: usize,
}

impl<K: Hash + Eq, V: Clone> Cache<K, V> {
    /// `weight_max` is in the unit of the entries' weights, such as bytes or entries.
    pub fn new(weight_max: usize) -> Cache<K, V> {
        let entries = Entries {
            by_key: LruCache::unbounded(),
            weight: 0,
        };
        Cache {
            entries: Mutex::new(entries),
            weight_max,
        }
    }

    /// Returns the value, which counts as a use of it.
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let mut entries = self.lock();
        entries.by_key.get(key).map(|entry| entry.value.clone())
    }

    /// Adds or replaces a value.
    pub fn insert(&self, key: K, value: V, weight: usize) {
        let mut entries = self.lock();
        entries.weight += weight;
        if let Some(replaced) = entries.by_key.put(key, Weighed { value, weight }) {
            entries.weight -= replaced.weight;
        }
        while entries.weight > self.weight_max && entries.by_key.len() > 1 {
            let evicted = entries.by_key.pop_lru();
            entries.weight -= evicted.map_or(0, |(_, entry)| entry.weight);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries<K, V>> {
        self.entries
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cached(cache: &Cache<&'static str, u8>, keys: &[&'static str]) -> Vec<bool> {
        keys.iter().map(|key| cache.get(key).is_some()).collect()
    }

    #[test]
    fn the_least_recently_used_entry_is_evicted_first() {
        let cache = Cache::new(5);
        cache.insert("a", 1, 2);
        cache.insert("b", 2, 2);
        assert_eq!(cache.get("a"), Some(1));
        cache.insert("c", 3, 2);
        assert_eq!(cached(&cache, &["a", "b", "c"]), [true, false, true]);
    }

    #[test]
    fn an_entry_that_is_too_heavy_stays_alone() {
        let cache = Cache::new(5);
        cache.insert("a", 1, 2);
        cache.insert("heavy", 2, 9);
        assert_eq!(cached(&cache, &["a", "heavy"]), [false, true]);
        cache.insert("b", 3, 5);
        assert_eq!(cached(&cache, &["heavy", "b"]), [false, true]);
    }

    #[test]
    fn replacing_an_entry_replaces_its_weight() {
        let cache = Cache::new(5);
        cache.insert("a", 1, 4);
        cache.insert("a", 2, 1);
        cache.insert("b", 3, 4);
        assert_eq!((cache.get("a"), cache.get("b")), (Some(2), Some(3)));
    }
}
