//! Turns the tree into a typed section and reports every fault, not only the first.
//!
//! Serde stops at its first error. This reader therefore records the fault with its key and origin,
//! skips the entry and reads again, until a pass finds nothing new. The field's type decides how
//! untyped text is read, so that `SERVO_DATABASE__PASSWORD=12345` stays text and
//! `SERVO_SERVER__MAX_REQUESTS=12345` becomes a number.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;

use super::deserialize::{NodeReader, Stop};
use super::tree::{Node, Value};
use crate::fault::ConfigFault;

/// Keys of the root that another reader handles.
#[derive(Default)]
pub(crate) struct ForeignKeys<'a> {
    /// Suggested when a key is mistyped.
    pub(crate) known: &'a [&'a str],
    /// Skipped without a fault.
    pub(crate) ignored: &'a [&'a str],
}

pub(crate) fn read<T: DeserializeOwned>(
    tree: &Node,
    foreign_keys: &ForeignKeys<'_>,
) -> Result<T, Vec<ConfigFault>> {
    let findings = Findings::new(foreign_keys);
    loop {
        match T::deserialize(NodeReader::root(tree, &findings)) {
            Ok(value) if findings.is_clean() => return Ok(value),
            Ok(_) => return Err(findings.into_faults()),
            Err(stop) => {
                if !findings.can_continue(stop) {
                    return Err(findings.into_faults());
                }
            }
        }
    }
}

/// Faults and decisions of the passes so far.
pub(crate) struct Findings<'a> {
    foreign_keys: &'a ForeignKeys<'a>,
    faults: RefCell<BTreeMap<String, String>>,
    skipped: RefCell<BTreeSet<String>>,
    placeholders: RefCell<BTreeSet<String>>,
}

impl<'a> Findings<'a> {
    fn new(foreign_keys: &'a ForeignKeys<'a>) -> Self {
        Findings {
            foreign_keys,
            faults: RefCell::default(),
            skipped: RefCell::default(),
            placeholders: RefCell::default(),
        }
    }

    pub(crate) fn record(&self, key: &str, sentence: impl Into<String>) {
        self.faults
            .borrow_mut()
            .entry(key.to_owned())
            .or_insert_with(|| sentence.into());
    }

    pub(crate) fn wrong_value(&self, key: &str, node: &Node, allowed: &str) {
        self.record(
            key,
            format!(
                "found {} ({}), but {allowed}",
                found(key, &node.value),
                node.origin
            ),
        );
    }

    pub(crate) fn unknown_key(
        &self,
        key: &str,
        node: &Node,
        name: &str,
        known: &[&str],
        at_root: bool,
    ) {
        if at_root && self.foreign_keys.ignored.contains(&name) {
            return;
        }
        let others = if at_root {
            self.foreign_keys.known
        } else {
            &[]
        };
        let mut allowed: Vec<&str> = known.iter().chain(others).copied().collect();
        allowed.sort_unstable();
        let hint = match closest(name, &allowed) {
            Some(near) => format!("did you mean `{near}`?"),
            None if allowed.is_empty() => "nothing can be set here".to_owned(),
            None => format!("known here are {}", allowed.join(", ")),
        };
        self.record(key, format!("unknown key ({}); {hint}", node.origin));
    }

    pub(crate) fn not_set(&self, key: &str) {
        // An entry of a list cannot be set by an environment variable.
        let variable = if key.contains('[') {
            String::new()
        } else {
            format!(" or as SERVO_{}", key.to_uppercase().replace('.', "__"))
        };
        self.record(key, format!("not set; set it in the file{variable}"));
    }

    pub(crate) fn is_skipped(&self, key: &str) -> bool {
        self.skipped.borrow().contains(key)
    }

    /// Returns the names directly below `prefix` that need a placeholder.
    pub(crate) fn placeholders_below(&self, prefix: &str) -> Vec<String> {
        let below = |key: &String| {
            let rest = if prefix.is_empty() {
                Some(key.as_str())
            } else {
                key.strip_prefix(prefix)?.strip_prefix('.')
            };
            rest.filter(|name| !name.contains('.')).map(str::to_owned)
        };
        self.placeholders
            .borrow()
            .iter()
            .filter_map(below)
            .collect()
    }

    fn is_clean(&self) -> bool {
        self.faults.borrow().is_empty()
    }

    /// Prepares the next pass. Returns false when it could not find anything new, which is when
    /// this stop names no new key to skip or to fill in.
    fn can_continue(&self, stop: Stop) -> bool {
        match stop {
            Stop::At(key) => self.skipped.borrow_mut().insert(key),
            Stop::MissingAt(key) => self.placeholders.borrow_mut().insert(key),
            Stop::Unlocated(sentence) | Stop::Missing(sentence) => {
                self.record("configuration", sentence);
                false
            }
        }
    }

    fn into_faults(self) -> Vec<ConfigFault> {
        self.faults
            .into_inner()
            .into_iter()
            .map(|(key, sentence)| ConfigFault { key, sentence })
            .collect()
    }
}

/// Describes the value that was found, without the text of a secret.
fn found(key: &str, value: &Value) -> String {
    match value {
        Value::Untyped(_) | Value::Text(_) if is_secret(key) => "a secret text".to_owned(),
        Value::Untyped(text) | Value::Text(text) => format!("`{text}`"),
        Value::Integer(number) => format!("the number {number}"),
        Value::Float(number) => format!("the number {number}"),
        Value::Boolean(truth) => truth.to_string(),
        Value::List(_) => "a list".to_owned(),
        Value::Table(_) => "a section".to_owned(),
        Value::Missing => "nothing".to_owned(),
    }
}

fn is_secret(key: &str) -> bool {
    let name = key.rsplit('.').next().unwrap_or(key);
    let name = name.split('[').next().unwrap_or(name);
    ["password", "secret", "token", "pepper", "url"]
        .iter()
        .any(|word| name.contains(word))
        || name.ends_with("key")
        || name.ends_with("keys")
}

fn closest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let distance = |candidate: &&str| strsim::damerau_levenshtein(name, candidate);
    known
        .iter()
        .copied()
        .filter(|k| distance(k) <= 2)
        .min_by_key(distance)
}
