//! What workers say they began, held against what Servo says about it.
//!
//! The journal is a file outside of Servo with one line per attempt that began. An attempt whose outcome counted has
//! exactly one line. A line whose attempt did not count must be explained: its worker was not heard of, it was not
//! started in time, it was cancelled, or the Postgres that had not stored its claim yet was killed.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt, TryStreamExt};
use servo_client::api::{self, Outcome, TransitionReason};

use crate::user::User;

const READERS: usize = 16;

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Its outcome moved the task.
    Counted,
    /// It was given up, for this reason.
    GivenUp(TransitionReason),
    /// Neither: nothing says why it does not count.
    Open,
}

/// How many lines there are of which kind.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub counted: usize,
    pub explained: BTreeMap<&'static str, usize>,
    /// What cannot be.
    pub faults: Vec<String>,
}

/// The attempt ids of the journal, one per line.
pub fn read(path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let attempt = |line: &str| line.split_whitespace().nth(1).map(str::to_owned);
    text.lines().map(|line| attempt(line).with_context(|| format!("read the line `{line}`"))).collect()
}

/// The fates of all attempts of these runs.
pub async fn fates(user: &User, runs: &[String]) -> Result<HashMap<String, Fate>> {
    let of_run = |run: &String| {
        let (user, run) = (user.clone(), run.clone());
        async move {
            let mut fates = Vec::new();
            for task in user.tasks(&run).await? {
                fates.extend(fates_of(&user.task(&run, &task.task_id).await?));
            }
            anyhow::Ok(fates)
        }
    };
    let all: Vec<Vec<(String, Fate)>> =
        stream::iter(runs.iter().map(of_run)).buffer_unordered(READERS).try_collect().await?;
    Ok(all.into_iter().flatten().collect())
}

fn fates_of(told: &api::GetTaskResponse) -> Vec<(String, Fate)> {
    let given_up = |number: u32| {
        let own = told.history.iter().filter(|change| change.attempt == number);
        own.map(api::TaskTransition::reason).find(|reason| explains(*reason))
    };
    let fate = |attempt: &api::Attempt| match (attempt.outcome(), attempt.late) {
        (outcome, false) if outcome != Outcome::Unspecified => Fate::Counted,
        _ => given_up(attempt.attempt).map_or(Fate::Open, Fate::GivenUp),
    };
    told.attempts.iter().map(|attempt| (attempt.attempt_id.clone(), fate(attempt))).collect()
}

/// Whether an attempt may have begun and not count for this reason.
fn explains(reason: TransitionReason) -> bool {
    matches!(
        reason,
        TransitionReason::HeartbeatTimeout
            | TransitionReason::DispatchAckTimeout
            | TransitionReason::RunCancelled
            | TransitionReason::LateResult
            | TransitionReason::ForceCancelled
    )
}

/// Holds the journal's lines against the fates of all attempts.
pub fn compare(lines: &[String], fates: &HashMap<String, Fate>, postgres_was_killed: bool) -> Tally {
    let mut tally = Tally::default();
    let mut count: HashMap<&str, usize> = HashMap::new();
    for line in lines {
        *count.entry(line).or_default() += 1;
    }
    for (attempt, fate) in fates {
        match (fate, count.get(attempt.as_str()).copied().unwrap_or(0)) {
            (Fate::Counted, 1) => tally.counted += 1,
            (Fate::Counted, lines) => tally.faults.push(format!("{attempt} counts and has {lines} lines")),
            (Fate::Open, 1..) => {
                tally.faults.push(format!("{attempt} began, and nothing says what became of it"))
            }
            (Fate::GivenUp(reason), lines @ 1..) => {
                *tally.explained.entry(reason.as_str_name()).or_default() += lines;
            }
            (Fate::Open | Fate::GivenUp(_), 0) => {}
        }
    }
    for attempt in count.keys().filter(|attempt| !fates.contains_key(**attempt)) {
        match postgres_was_killed {
            true => *tally.explained.entry("POSTGRES_KILLED").or_default() += 1,
            false => tally.faults.push(format!("{attempt} began, and Servo knows nothing about it")),
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], fates: &[(&str, Fate)], killed: bool, faults: usize) {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let fates = fates.iter().map(|(attempt, fate)| ((*attempt).to_owned(), *fate)).collect();
        let tally = compare(&lines, &fates, killed);
        assert_eq!(tally.faults.len(), faults, "{tally:?}");
    }

    #[test]
    fn what_counts_has_one_line_and_the_rest_a_reason() {
        let lost = Fate::GivenUp(TransitionReason::HeartbeatTimeout);
        check(&["a"], &[("a", Fate::Counted)], false, 0);
        check(&[], &[("a", Fate::Counted)], false, 1);
        check(&["a", "a"], &[("a", Fate::Counted)], false, 1);
        check(&["a", "b"], &[("a", lost), ("b", Fate::Counted)], false, 0);
        check(&["a"], &[("a", Fate::Open)], false, 1);
        check(&[], &[("a", Fate::Open)], false, 0);
        check(&["x"], &[], false, 1);
        check(&["x"], &[], true, 0);
    }
}
