//! Turns the tree into a typed section and finds every fault on the way, not only the first.
//!
//! Serde stops at its first error. This reader notes the fault with its key and origin, leaves the entry out
//! and reads again until nothing new turns up. The field's type decides how untyped text is read, so that
//! `SERVO_DATABASE__PASSWORD=12345` stays text and `SERVO_SERVER__MAX_REQUESTS=12345` becomes a number.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;

use super::deserialize::{NodeReader, Stop};
use super::tree::{Node, Value};
use crate::fault::ConfigFault;

/// Keys of the root that somebody else reads.
#[derive(Default)]
pub(crate) struct Neighbours<'a> {
    /// Worth naming when a key is mistyped.
    pub(crate) known: &'a [&'a str],
    /// Not judged here.
    pub(crate) ignored: &'a [&'a str],
}

pub(crate) fn read<T: DeserializeOwned>(
    tree: &Node,
    neighbours: &Neighbours<'_>,
) -> Result<T, Vec<ConfigFault>> {
    let notes = Notes::new(neighbours);
    loop {
        match T::deserialize(NodeReader::root(tree, &notes)) {
            Ok(value) if notes.is_clean() => return Ok(value),
            Ok(_) => return Err(notes.into_faults()),
            Err(stop) => {
                if !notes.can_go_on(stop) {
                    return Err(notes.into_faults());
                }
            }
        }
    }
}

/// What the passes so far found out.
pub(crate) struct Notes<'a> {
    neighbours: &'a Neighbours<'a>,
    faults: RefCell<BTreeMap<String, String>>,
    left_out: RefCell<BTreeSet<String>>,
    stand_ins: RefCell<BTreeSet<String>>,
}

impl<'a> Notes<'a> {
    fn new(neighbours: &'a Neighbours<'a>) -> Self {
        Notes {
            neighbours,
            faults: RefCell::default(),
            left_out: RefCell::default(),
            stand_ins: RefCell::default(),
        }
    }

    pub(crate) fn note(&self, key: &str, sentence: impl Into<String>) {
        self.faults
            .borrow_mut()
            .entry(key.to_owned())
            .or_insert_with(|| sentence.into());
    }

    pub(crate) fn wrong_value(&self, key: &str, node: &Node, allowed: &str) {
        self.note(
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
        if at_root && self.neighbours.ignored.contains(&name) {
            return;
        }
        let others = if at_root { self.neighbours.known } else { &[] };
        let mut allowed: Vec<&str> = known.iter().chain(others).copied().collect();
        allowed.sort_unstable();
        let hint = match closest(name, &allowed) {
            Some(near) => format!("did you mean `{near}`?"),
            None if allowed.is_empty() => "nothing can be set here".to_owned(),
            None => format!("known here are {}", allowed.join(", ")),
        };
        self.note(key, format!("unknown key ({}); {hint}", node.origin));
    }

    pub(crate) fn not_set(&self, key: &str) {
        // An entry of a list has no variable of its own.
        let variable = match key.contains('[') {
            true => String::new(),
            false => format!(" or as SERVO_{}", key.to_uppercase().replace('.', "__")),
        };
        self.note(key, format!("not set; set it in the file{variable}"));
    }

    pub(crate) fn is_left_out(&self, key: &str) -> bool {
        self.left_out.borrow().contains(key)
    }

    /// The names directly below `prefix` for which a stand-in is wanted.
    pub(crate) fn stand_ins_below(&self, prefix: &str) -> Vec<String> {
        let below = |key: &String| {
            let rest = if prefix.is_empty() {
                Some(key.as_str())
            } else {
                key.strip_prefix(prefix)?.strip_prefix('.')
            };
            rest.filter(|name| !name.contains('.')).map(str::to_owned)
        };
        self.stand_ins.borrow().iter().filter_map(below).collect()
    }

    fn is_clean(&self) -> bool {
        self.faults.borrow().is_empty()
    }

    /// Whether another pass can find more: it can if this stop teaches us to leave out or fill in a new key.
    fn can_go_on(&self, stop: Stop) -> bool {
        match stop {
            Stop::At(key) => self.left_out.borrow_mut().insert(key),
            Stop::MissingAt(key) => self.stand_ins.borrow_mut().insert(key),
            Stop::Unplaced(sentence) | Stop::Missing(sentence) => {
                self.note("configuration", sentence);
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

/// What stands there, in words; never the text of a secret.
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
