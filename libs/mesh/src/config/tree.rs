//! The layers of configuration as one tree, in which every value keeps its origin.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::fault::ConfigFault;

/// The sources of configuration, lowest precedence first: the file, the environment, overrides by
/// the program.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    file: Option<PathBuf>,
    variables: Vec<(String, String)>,
    overrides: Vec<(String, String)>,
}

impl Sources {
    pub fn new() -> Sources {
        Sources::default()
    }

    /// `SERVO_CONFIG` names the file; `SERVO_<SECTION>__<KEY>` sets one key. A variable without the
    /// double underscore (`SERVO_DATABASE_URL`) is not configuration and is ignored.
    pub fn from_process() -> Sources {
        let mut sources = Sources::new();
        for (name, value) in std::env::vars_os() {
            let (Some(name), Some(text)) = (name.to_str(), value.to_str()) else {
                continue;
            };
            sources = if name == "SERVO_CONFIG" {
                sources.file(text)
            } else {
                sources.variable(name, text)
            };
        }
        sources
    }

    pub fn file(mut self, path: impl Into<PathBuf>) -> Sources {
        self.file = Some(path.into());
        self
    }

    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Sources {
        let name = name.into();
        if name
            .strip_prefix("SERVO_")
            .is_some_and(|rest| rest.contains("__"))
        {
            self.variables.push((name, value.into()));
        }
        self
    }

    /// Overrides a dotted key with the highest precedence, for programs that run several services.
    pub fn set(mut self, key: impl Into<String>, value: impl fmt::Display) -> Sources {
        self.overrides.push((key.into(), value.to_string()));
        self
    }

    /// Merges all layers. A file that cannot be read is the only fault reported, because the other
    /// layers cannot be judged without it.
    pub(crate) fn tree(&self) -> Result<Node, Vec<ConfigFault>> {
        let mut root = match &self.file {
            Some(path) => read_file(path).map_err(|fault| vec![fault])?,
            None => Node {
                value: Value::Table(BTreeMap::new()),
                origin: Origin::Program,
            },
        };
        let mut faults = Vec::new();
        for (name, value) in &self.variables {
            faults.extend(
                root.put(&dotted(name), value, Origin::Variable(name.clone()))
                    .err(),
            );
        }
        for (key, value) in &self.overrides {
            faults.extend(root.put(key, value, Origin::Program).err());
        }
        if faults.is_empty() {
            Ok(root)
        } else {
            Err(faults)
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// Text from the environment; the field's type decides how it is read.
    Untyped(String),
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    List(Vec<Node>),
    Table(BTreeMap<String, Node>),
    /// Placeholder of a required value that is missing, so that later faults are found too.
    Missing,
}

#[derive(Debug, Clone)]
pub(crate) enum Origin {
    File(Arc<Path>),
    Variable(String),
    Program,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File(path) => write!(f, "file {}", path.display()),
            Origin::Variable(name) => write!(f, "environment variable {name}"),
            Origin::Program => f.write_str("set by the program"),
        }
    }
}

impl Node {
    pub(crate) fn missing() -> Node {
        Node {
            value: Value::Missing,
            origin: Origin::Program,
        }
    }

    /// Returns the node at a dotted key, for example to report the origin of its value.
    pub(crate) fn at(&self, dotted: &str) -> Option<&Node> {
        dotted
            .split('.')
            .try_fold(self, |node, part| match &node.value {
                Value::Table(entries) => entries.get(part),
                _ => None,
            })
    }

    /// Splits the root into the entries with these names and the other ones.
    pub(crate) fn split(&self, names: &[&str]) -> (Node, Node) {
        let Value::Table(entries) = &self.value else {
            return (self.clone(), Node::missing());
        };
        let (named, others) = entries
            .clone()
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(key, _)| names.contains(&key.as_str()));
        let table = |entries| Node {
            value: Value::Table(entries),
            origin: self.origin.clone(),
        };
        (table(named), table(others))
    }

    fn put(&mut self, dotted: &str, text: &str, origin: Origin) -> Result<(), ConfigFault> {
        let mut node = self;
        for part in dotted.split('.') {
            let Value::Table(entries) = &mut node.value else {
                return Err(not_a_section(dotted, &node.origin, &origin));
            };
            let section = || Node {
                value: Value::Table(BTreeMap::new()),
                origin: origin.clone(),
            };
            node = entries.entry(part.to_owned()).or_insert_with(section);
        }
        *node = Node {
            value: Value::Untyped(text.to_owned()),
            origin,
        };
        Ok(())
    }
}

/// `SERVO_SERVER__MAX_REQUESTS` is `server.max_requests`.
fn dotted(variable: &str) -> String {
    variable
        .strip_prefix("SERVO_")
        .unwrap_or(variable)
        .to_lowercase()
        .replace("__", ".")
}

fn not_a_section(dotted: &str, taken: &Origin, origin: &Origin) -> ConfigFault {
    let sentence =
        format!("({origin}) cannot be set, since a part of its name already is a value ({taken})");
    ConfigFault {
        key: dotted.to_owned(),
        sentence,
    }
}

fn read_file(path: &Path) -> Result<Node, ConfigFault> {
    let fault = |sentence| ConfigFault {
        key: "SERVO_CONFIG".to_owned(),
        sentence,
    };
    let text = std::fs::read_to_string(path)
        .map_err(|e| fault(format!("the file {} cannot be read: {e}", path.display())))?;
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
        let line = e
            .span()
            .map_or(1, |span| text[..span.start].lines().count().max(1));
        fault(format!(
            "the file {} is not TOML at line {line}: {}",
            path.display(),
            e.message()
        ))
    })?;
    Ok(from_toml(
        toml::Value::Table(table),
        &Origin::File(Arc::from(path)),
    ))
}

fn from_toml(value: toml::Value, origin: &Origin) -> Node {
    let value = match value {
        toml::Value::String(text) => Value::Text(text),
        toml::Value::Integer(number) => Value::Integer(number),
        toml::Value::Float(number) => Value::Float(number),
        toml::Value::Boolean(truth) => Value::Boolean(truth),
        toml::Value::Datetime(time) => Value::Text(time.to_string()),
        toml::Value::Array(items) => {
            Value::List(items.into_iter().map(|i| from_toml(i, origin)).collect())
        }
        toml::Value::Table(entries) => Value::Table(
            entries
                .into_iter()
                .map(|(key, v)| (key, from_toml(v, origin)))
                .collect(),
        ),
    };
    Node {
        value,
        origin: origin.clone(),
    }
}
