//! The projections of the scheduler.

/// A table that the fold writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Projection {
    CheckResults,
    Materializations,
    Partitions,
    RunKeyConflicts,
    Runs,
    Tasks,
}

impl Projection {
    /// Sorted by name.
    pub(crate) const ALL: [Projection; 6] = [
        Projection::CheckResults,
        Projection::Materializations,
        Projection::Partitions,
        Projection::RunKeyConflicts,
        Projection::Runs,
        Projection::Tasks,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Projection::CheckResults => "scheduler.check_results",
            Projection::Materializations => "scheduler.materializations",
            Projection::Partitions => "scheduler.partitions",
            Projection::RunKeyConflicts => "scheduler.run_key_conflicts",
            Projection::Runs => "scheduler.runs",
            Projection::Tasks => "scheduler.tasks",
        }
    }
}
