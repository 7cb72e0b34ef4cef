//! The planner's rows. One function per statement; a statement stands in its file under `sql/`.

pub(crate) mod artifacts;
pub(crate) mod deployments;
pub(crate) mod plans;
pub(crate) mod requests;
pub(crate) mod sets;
pub(crate) mod statuses;

/// Whose rows: every table of the planner begins with these two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) tenant: String,
    pub(crate) workspace: String,
}

/// A statement from its file, with the scope bound first.
macro_rules! scoped {
    ($name:literal, $scope:expr) => {
        servo_store::query(include_str!(concat!("sql/", $name, ".sql")))
            .bind(&$scope.tenant)
            .bind(&$scope.workspace)
    };
}
pub(crate) use scoped;
