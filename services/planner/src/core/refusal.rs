//! Why a request is refused: a reason from the closed list, a message, and the invalid fields.

use servo_model::partitioning::PartitioningError;
use servo_model::selection::{SelectionError, SelectionFault};
use servo_proto::v1::ErrorReason as Reason;

use crate::core::deployment_graph::DeploymentGraph;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    /// The path of each invalid field and a sentence about it.
    pub(crate) violations: Vec<(String, String)>,
}

impl Refusal {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Refusal {
        Refusal {
            reason,
            message: message.into(),
            violations: Vec::new(),
        }
    }

    /// A refusal because of a single field.
    pub(crate) fn of_field(
        reason: Reason,
        field: impl Into<String>,
        sentence: impl Into<String>,
    ) -> Refusal {
        let (field, sentence) = (field.into(), sentence.into());
        Refusal {
            reason,
            message: format!("{field}: {sentence}"),
            violations: vec![(field, sentence)],
        }
    }

    /// Returns the path of the first invalid field, or an empty string when no particular field is
    /// invalid.
    pub(crate) fn field(&self) -> &str {
        self.violations.first().map_or("", |(field, _)| field)
    }

    pub(crate) fn of_partitioning(field: impl Into<String>, error: &PartitioningError) -> Refusal {
        let reason = match error {
            PartitioningError::Invalid(_) => Reason::PartitionInvalid,
            PartitioningError::OutOfRange(_) => Reason::PartitionOutOfRange,
            PartitioningError::TooMany(_) => Reason::QuotaExceeded,
        };
        Refusal::of_field(reason, field, error.to_string())
    }

    /// `list` is the field that holds the expressions.
    pub(crate) fn of_selection(
        list: &str,
        error: &SelectionError,
        graph: &DeploymentGraph,
    ) -> Refusal {
        let (reason, hint) = match &error.fault {
            SelectionFault::UnknownAsset(key) => {
                (Reason::AssetNotFound, graph.did_you_mean(&key.canonical()))
            }
            SelectionFault::Shape(_) | SelectionFault::OnlyExclusions => {
                (Reason::SelectionInvalid, String::new())
            }
        };
        Refusal::of_field(
            reason,
            format!("{list}[{}]", error.index),
            format!("{error}{hint}"),
        )
    }
}
