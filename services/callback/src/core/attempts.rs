//! Which task each attempt of a run belongs to: attempts are named after their task and their number.

use std::collections::HashMap;

use servo_model::dispatch_id::DispatchId;
use servo_model::{AttemptId, RunId, TaskId, TaskKey};

/// A task of a run, as far as its attempts go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskLine {
    pub ordinal: u32,
    pub item: Option<u32>,
    /// How many attempts it has had.
    pub attempts: u32,
    /// The one that goes on.
    pub active: Option<AttemptId>,
}

/// The attempts of a run by their ids.
#[derive(Debug, Default)]
pub struct Attempts {
    tasks: HashMap<AttemptId, TaskId>,
    active: HashMap<AttemptId, TaskId>,
}

impl Attempts {
    /// `keys` are those of the plan, by ordinal.
    pub fn of(run: &RunId, keys: &[TaskKey], lines: &[TaskLine]) -> Attempts {
        let mut attempts = Attempts::default();
        for line in lines {
            let Some(planned) = keys.get(line.ordinal as usize) else {
                continue;
            };
            let key = line
                .item
                .map_or_else(|| planned.clone(), |item| planned.child(item));
            let id = key.id();
            let all = (1..=line.attempts).map(|n| DispatchId::new(run, &key, n).attempt_id());
            attempts.tasks.extend(all.map(|attempt| (attempt, id)));
            attempts
                .active
                .extend(line.active.map(|attempt| (attempt, id)));
        }
        attempts
    }

    pub fn task_of(&self, attempt: &AttemptId) -> Option<&TaskId> {
        self.tasks.get(attempt)
    }

    /// All attempts of a task so far.
    pub fn of_task(&self, task: &TaskId) -> Vec<AttemptId> {
        self.tasks
            .iter()
            .filter(|(_, of)| *of == task)
            .map(|(attempt, _)| *attempt)
            .collect()
    }

    /// Whether more may come: of this attempt alone, when one is given.
    pub fn goes_on(&self, attempt: &AttemptId) -> bool {
        self.active.contains_key(attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_found_by_their_task_and_tasks_by_their_attempts() {
        let run = RunId::from_bytes([7; 16]);
        let keys: Vec<TaskKey> = ["x/a:materialize", "x/b:materialize"]
            .map(|key| key.parse().unwrap())
            .into();
        let id = |key: &TaskKey, n| DispatchId::new(&run, key, n).attempt_id();
        let lines = [
            TaskLine {
                ordinal: 0,
                item: None,
                attempts: 2,
                active: Some(id(&keys[0], 2)),
            },
            TaskLine {
                ordinal: 1,
                item: Some(3),
                attempts: 1,
                active: None,
            },
            TaskLine {
                ordinal: 9,
                item: None,
                attempts: 1,
                active: None,
            },
        ];
        let attempts = Attempts::of(&run, &keys, &lines);
        assert_eq!(attempts.task_of(&id(&keys[0], 1)), Some(&keys[0].id()));
        assert_eq!(attempts.of_task(&keys[0].id()).len(), 2);
        let child = keys[1].child(3);
        assert_eq!(attempts.task_of(&id(&child, 1)), Some(&child.id()));
        assert!(attempts.goes_on(&id(&keys[0], 2)));
        assert!(!attempts.goes_on(&id(&keys[0], 1)) && !attempts.goes_on(&id(&child, 1)));
    }
}
