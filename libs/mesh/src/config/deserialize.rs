//! The serde side of [`super::read`]: a deserializer that knows its key and records faults as
//! findings.

use std::fmt;
use std::vec;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use super::read::Findings;
use super::tree::{Node, Value};

/// The reason why a pass ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A type refused its value; the key is not known yet.
    Unlocated(String),
    /// A required field of the struct being read is absent.
    Missing(String),
    /// The fault at this key is recorded.
    At(String),
    MissingAt(String),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Stop::Unlocated(text) | Stop::Missing(text) | Stop::At(text) | Stop::MissingAt(text)) =
            self;
        f.write_str(text)
    }
}

impl std::error::Error for Stop {}

impl de::Error for Stop {
    fn custom<T: fmt::Display>(sentence: T) -> Self {
        Stop::Unlocated(sentence.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Stop::Missing(field.to_owned())
    }

    // The value that was found is described from the tree, because the tree knows its origin.
    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Stop::Unlocated(format!("{expected} is allowed"))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Stop::Unlocated(format!("{expected} is allowed"))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Stop::Unlocated(format!("one of {} is allowed", expected.join(", ")))
    }
}

pub(crate) struct NodeReader<'a> {
    node: &'a Node,
    key: String,
    findings: &'a Findings<'a>,
}

impl<'a> NodeReader<'a> {
    pub(crate) fn root(node: &'a Node, findings: &'a Findings<'a>) -> Self {
        NodeReader {
            node,
            key: String::new(),
            findings,
        }
    }

    /// Records a fault that a visitor described without knowing its key.
    fn locate(node: &Node, key: &str, findings: &Findings<'_>, stop: Stop) -> Stop {
        let Stop::Unlocated(allowed) = stop else {
            return stop;
        };
        if !matches!(node.value, Value::Missing) {
            findings.wrong_value(key, node, &allowed);
        }
        Stop::At(key.to_owned())
    }

    fn refuse(&self, allowed: &str) -> Stop {
        self.findings.wrong_value(&self.key, self.node, allowed);
        Stop::At(self.key.clone())
    }

    fn text(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Untyped(text) => Some(text.trim()),
            _ => None,
        }
    }

    fn is_missing(&self) -> bool {
        let missing = matches!(self.node.value, Value::Missing);
        if missing {
            self.findings.not_set(&self.key);
        }
        missing
    }
}

macro_rules! read_integer {
    ($($method:ident => $type:ty, $visit:ident;)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
            if self.is_missing() {
                return visitor.$visit(1);
            }
            let number = match &self.node.value {
                Value::Integer(number) => <$type>::try_from(*number).ok(),
                _ => self.text().and_then(|text| text.parse().ok()),
            };
            let allowed = format!("a whole number from {} to {} is allowed", <$type>::MIN, <$type>::MAX);
            visitor.$visit(number.ok_or_else(|| self.refuse(&allowed))?)
        }
    )+};
}

impl<'de> de::Deserializer<'de> for NodeReader<'_> {
    type Error = Stop;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        match &self.node.value {
            Value::Untyped(_) | Value::Text(_) | Value::Missing => self.deserialize_str(visitor),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Boolean(truth) => visitor.visit_bool(*truth),
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Table(_) => self.deserialize_map(visitor),
        }
    }

    read_integer! {
        deserialize_i8 => i8, visit_i8;
        deserialize_i16 => i16, visit_i16;
        deserialize_i32 => i32, visit_i32;
        deserialize_i64 => i64, visit_i64;
        deserialize_u8 => u8, visit_u8;
        deserialize_u16 => u16, visit_u16;
        deserialize_u32 => u32, visit_u32;
        deserialize_u64 => u64, visit_u64;
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        if self.is_missing() {
            return visitor.visit_bool(false);
        }
        match (&self.node.value, self.text()) {
            (Value::Boolean(truth), _) => visitor.visit_bool(*truth),
            (_, Some("true")) => visitor.visit_bool(true),
            (_, Some("false")) => visitor.visit_bool(false),
            _ => Err(self.refuse("true or false is allowed")),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        if self.is_missing() {
            return visitor.visit_f64(1.0);
        }
        match (&self.node.value, self.text().map(str::parse)) {
            (Value::Float(number), _) => visitor.visit_f64(*number),
            (Value::Integer(number), _) => visitor.visit_f64(*number as f64),
            (_, Some(Ok(number))) => visitor.visit_f64(number),
            _ => Err(self.refuse("a number is allowed")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        if self.is_missing() {
            return visitor.visit_str("");
        }
        match &self.node.value {
            Value::Untyped(text) | Value::Text(text) => visitor.visit_str(text),
            _ => Err(self.refuse("text is allowed")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        let name = match &self.node.value {
            _ if self.is_missing() => variants.first().copied().unwrap_or_default(),
            Value::Untyped(text) | Value::Text(text) => text.as_str(),
            _ => return Err(self.refuse(&format!("one of {} is allowed", variants.join(", ")))),
        };
        visitor.visit_enum(name.into_deserializer())
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        let items = match &self.node.value {
            _ if self.is_missing() => Vec::new(),
            Value::List(items) => items.clone(),
            Value::Untyped(text) => comma_separated(text, self.node),
            _ => return Err(self.refuse("a list is allowed")),
        };
        let keyed = items
            .into_iter()
            .enumerate()
            .map(|(index, item)| (format!("{}[{index}]", self.key), item));
        let kept: Vec<_> = keyed
            .filter(|(key, _)| !self.findings.is_skipped(key))
            .collect();
        visitor.visit_seq(Items {
            findings: self.findings,
            items: kept.into_iter(),
        })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        let Value::Table(entries) = &self.node.value else {
            return Err(self.refuse("a section is allowed"));
        };
        let kept = entries
            .iter()
            .filter(|(name, _)| !self.findings.is_skipped(&join(&self.key, name)));
        let entries = kept
            .map(|(name, node)| (name.clone(), node.clone()))
            .collect();
        visitor.visit_map(Entries::new(self.key, self.findings, entries))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        let entries = match &self.node.value {
            Value::Table(entries) => known_entries(entries.iter(), &self, fields),
            Value::Missing => placeholders(&self),
            _ => return Err(self.refuse("a section with keys is allowed")),
        };
        let (key, findings) = (self.key, self.findings);
        visitor
            .visit_map(Entries::new(key.clone(), findings, entries))
            .map_err(|stop| match stop {
                Stop::Missing(field) => Stop::MissingAt(join(&key, &field)),
                other => other,
            })
    }

    forward_to_deserialize_any! {
        i128 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// Returns the entries that `fields` names and records a fault for every other one.
fn known_entries<'n>(
    entries: impl Iterator<Item = (&'n String, &'n Node)>,
    reader: &NodeReader<'_>,
    fields: &[&str],
) -> Vec<(String, Node)> {
    let mut known = Vec::new();
    for (name, node) in entries {
        let key = join(&reader.key, name);
        if !fields.contains(&name.as_str()) {
            reader
                .findings
                .unknown_key(&key, node, name, fields, reader.key.is_empty());
        } else if !reader.findings.is_skipped(&key) {
            known.push((name.clone(), node.clone()));
        }
    }
    let present = |name: &String| known.iter().any(|(known, _)| known == name);
    let extra: Vec<_> = placeholders(reader)
        .into_iter()
        .filter(|(name, _)| !present(name))
        .collect();
    known.into_iter().chain(extra).collect()
}

fn placeholders(reader: &NodeReader<'_>) -> Vec<(String, Node)> {
    reader
        .findings
        .placeholders_below(&reader.key)
        .into_iter()
        .map(|name| (name, Node::missing()))
        .collect()
}

fn comma_separated(text: &str, node: &Node) -> Vec<Node> {
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    parts
        .map(|part| Node {
            value: Value::Untyped(part.to_owned()),
            origin: node.origin.clone(),
        })
        .collect()
}

fn join(key: &str, name: &str) -> String {
    if key.is_empty() {
        name.to_owned()
    } else {
        format!("{key}.{name}")
    }
}

struct Entries<'a> {
    key: String,
    findings: &'a Findings<'a>,
    entries: vec::IntoIter<(String, Node)>,
    value: Option<(String, Node)>,
}

impl<'a> Entries<'a> {
    fn new(key: String, findings: &'a Findings<'a>, entries: Vec<(String, Node)>) -> Self {
        Entries {
            key,
            findings,
            entries: entries.into_iter(),
            value: None,
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Stop;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Stop> {
        let Some((name, node)) = self.entries.next() else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, Stop> = name.as_str().into_deserializer();
        let read = seed.deserialize(key)?;
        self.value = Some((name, node));
        Ok(Some(read))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Stop> {
        let (name, node) = self
            .value
            .take()
            .ok_or_else(|| Stop::Unlocated("value before key".to_owned()))?;
        let key = join(&self.key, &name);
        seed.deserialize(NodeReader {
            node: &node,
            key: key.clone(),
            findings: self.findings,
        })
        .map_err(|stop| NodeReader::locate(&node, &key, self.findings, stop))
    }
}

struct Items<'a> {
    findings: &'a Findings<'a>,
    items: vec::IntoIter<(String, Node)>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Stop;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Stop> {
        let Some((key, node)) = self.items.next() else {
            return Ok(None);
        };
        let reader = NodeReader {
            node: &node,
            key: key.clone(),
            findings: self.findings,
        };
        seed.deserialize(reader)
            .map(Some)
            .map_err(|stop| NodeReader::locate(&node, &key, self.findings, stop))
    }
}
