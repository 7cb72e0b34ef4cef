//! The reason why a service did not start or stopped: one clear sentence and an exit code.

use std::fmt;
use std::process::ExitCode;

/// One fault of the configuration: the key and a sentence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigFault {
    /// The dotted key (`server.listen`).
    pub key: String,
    /// Describes the fault, the origin of the value and the allowed values.
    pub sentence: String,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.sentence)
    }
}

/// The error that ends a service. Any error converts into it with `?`, as a fault of the running
/// service; [`Fault::config`] makes the faults that the operator must correct in the configuration.
#[derive(Debug)]
pub enum Fault {
    /// Every fault of the configuration, ordered by key.
    Config(Vec<ConfigFault>),
    /// The configuration was valid, but the service could not do its work.
    Runtime(String),
}

impl Fault {
    pub fn config(key: impl Into<String>, sentence: impl fmt::Display) -> Fault {
        Fault::Config(vec![ConfigFault {
            key: key.into(),
            sentence: sentence.to_string(),
        }])
    }

    pub fn runtime(sentence: impl fmt::Display) -> Fault {
        Fault::Runtime(sentence.to_string())
    }

    /// Returns 2 for a wrong configuration, 1 for everything else.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Fault::Config(_) => ExitCode::from(2),
            Fault::Runtime(_) => ExitCode::from(1),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Config(faults) => write_lines(f, faults),
            Fault::Runtime(sentence) => f.write_str(sentence),
        }
    }
}

fn write_lines(f: &mut fmt::Formatter<'_>, faults: &[ConfigFault]) -> fmt::Result {
    if let [only] = faults {
        return write!(f, "the configuration is wrong: {only}");
    }
    write!(f, "the configuration has {} faults:", faults.len())?;
    faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
}

/// `Fault` deliberately does not implement `std::error::Error`; otherwise this conversion, which
/// lets `?` accept any error, would conflict with the standard library's.
impl<E: std::error::Error> From<E> for Fault {
    fn from(error: E) -> Fault {
        Fault::Runtime(with_causes(&error))
    }
}

/// Formats an error and its causes as one sentence, without repeating a cause that its parent
/// already quotes.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut sentence = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        if !sentence.contains(&text) {
            sentence = format!("{sentence}: {text}");
        }
        cause = next.source();
    }
    sentence
}
