//! Reads and writes the planner's rows: one function per statement, each statement in its file
//! under `sql/`.

pub(crate) mod artifacts;
pub(crate) mod deployments;
pub(crate) mod plans;
pub(crate) mod requests;
pub(crate) mod sets;
pub(crate) mod statuses;

use servo_model::{TenantId, WorkspaceId};

/// The tenant and workspace that own a row; they are the first two columns of every table of the
/// planner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Scope {
    pub(crate) tenant: TenantId,
    pub(crate) workspace: WorkspaceId,
}

/// Builds a statement from its file and binds the scope first.
macro_rules! scoped {
    ($name:literal, $scope:expr) => {
        servo_store::query(include_str!(concat!("sql/", $name, ".sql")))
            .bind(&$scope.tenant)
            .bind(&$scope.workspace)
    };
}
pub(crate) use scoped;
