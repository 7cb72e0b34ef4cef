//! Which task each attempt of a run belongs to. The id of an attempt is derived from its task and
//! its number.

use std::collections::HashMap;

use servo_model::dispatch_id::DispatchId;
use servo_model::{AttemptId, RunId, TaskId, TaskKey, TaskRef};

/// The attempts of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskAttempts {
    pub task: TaskRef,
    /// How many attempts the task has had.
    pub attempts: u32,
    /// The attempt that is running.
    pub active: Option<AttemptId>,
}

/// The attempts of a run by id.
#[derive(Debug, Default)]
pub struct Attempts {
    tasks: HashMap<AttemptId, TaskId>,
    active: HashMap<AttemptId, TaskId>,
}

impl Attempts {
    /// Derives the ids of all attempts. `keys` are the task keys of the plan by ordinal.
    pub fn of(run: &RunId, keys: &[TaskKey], tasks: &[TaskAttempts]) -> Attempts {
        let mut attempts = Attempts::default();
        for task in tasks {
            let Some(planned) = keys.get(task.task.ordinal as usize) else {
                continue;
            };
            let key = task
                .task
                .map_index
                .map_or_else(|| planned.clone(), |item| planned.child(item));
            let id = key.id();
            let all = (1..=task.attempts).map(|n| DispatchId::new(run, &key, n).attempt_id());
            attempts.tasks.extend(all.map(|attempt| (attempt, id)));
            attempts
                .active
                .extend(task.active.map(|attempt| (attempt, id)));
        }
        attempts
    }

    pub fn task_of(&self, attempt: &AttemptId) -> Option<&TaskId> {
        self.tasks.get(attempt)
    }

    /// Returns all attempts of a task so far.
    pub fn of_task(&self, task: &TaskId) -> Vec<AttemptId> {
        self.tasks
            .iter()
            .filter(|(_, of)| *of == task)
            .map(|(attempt, _)| *attempt)
            .collect()
    }

    /// Returns whether the attempt is still running.
    pub fn is_active(&self, attempt: &AttemptId) -> bool {
        self.active.contains_key(attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_and_tasks_find_each_other() {
        let run = RunId::from_bytes([7; 16]);
        let keys: Vec<TaskKey> = ["x/a:materialize", "x/b:materialize"]
            .map(|key| key.parse().unwrap())
            .into();
        let id = |key: &TaskKey, n| DispatchId::new(&run, key, n).attempt_id();
        let tasks = [
            TaskAttempts {
                task: TaskRef::planned(0),
                attempts: 2,
                active: Some(id(&keys[0], 2)),
            },
            TaskAttempts {
                task: TaskRef::mapped(1, 3),
                attempts: 1,
                active: None,
            },
            TaskAttempts {
                task: TaskRef::planned(9),
                attempts: 1,
                active: None,
            },
        ];
        let attempts = Attempts::of(&run, &keys, &tasks);
        assert_eq!(attempts.task_of(&id(&keys[0], 1)), Some(&keys[0].id()));
        assert_eq!(attempts.of_task(&keys[0].id()).len(), 2);
        let child = keys[1].child(3);
        assert_eq!(attempts.task_of(&id(&child, 1)), Some(&child.id()));
        assert!(attempts.is_active(&id(&keys[0], 2)));
        assert!(!attempts.is_active(&id(&keys[0], 1)) && !attempts.is_active(&id(&child, 1)));
    }
}
