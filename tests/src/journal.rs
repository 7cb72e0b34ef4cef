//! Compares the journal of the workers with the histories of Servo.
//!
//! The journal is a file outside of Servo with one line per attempt that a worker began. An attempt
//! whose outcome counted has exactly one line. A line of any other attempt needs an explanation:
//! its worker fell silent, it was not started in time, it was cancelled, or Postgres was killed
//! before it had stored the claim. A process begins an attempt once, however often its envelope is
//! delivered.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt, TryStreamExt};
use servo_client::api::{self, Outcome, TransitionReason};

use crate::user::User;

const READERS: usize = 16;
/// How far in time a line may be from the kill of Postgres that explains it. A claim is on disk
/// within a few hundred milliseconds; an earlier one may still be on the way to its worker when
/// Postgres dies.
const KILL_DISTANCE_MAX: Duration = Duration::from_secs(2);

/// The start of an attempt by a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub attempt: String,
    pub session: String,
    pub at: SystemTime,
}

impl Line {
    fn parse(text: &str) -> Option<Line> {
        let mut words = text.split_whitespace().skip(1);
        let (attempt, session) = (words.next()?.to_owned(), words.next()?.to_owned());
        let at = UNIX_EPOCH + Duration::from_micros(words.next()?.parse().ok()?);
        Some(Line {
            attempt,
            session,
            at,
        })
    }

    fn is_near(&self, kill: &SystemTime) -> bool {
        let apart = self
            .at
            .duration_since(*kill)
            .unwrap_or_else(|before| before.duration());
        apart <= KILL_DISTANCE_MAX
    }
}

/// How Servo recorded the end of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    /// Its outcome changed the task.
    Counted,
    /// Servo gave it up for this reason.
    GivenUp(TransitionReason),
    /// Neither, so nothing explains why it does not count.
    Open,
}

/// The number of lines of each kind.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    pub counted: usize,
    pub explained: BTreeMap<&'static str, usize>,
    /// Lines and attempts that contradict each other.
    pub faults: Vec<String>,
}

pub fn read(path: &Path) -> Result<Vec<Line>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    text.lines()
        .map(|line| Line::parse(line).with_context(|| format!("read the line `{line}`")))
        .collect()
}

/// Reads the ends of all attempts of these runs.
pub async fn attempt_ends(user: &User, runs: &[String]) -> Result<HashMap<String, AttemptEnd>> {
    let of_run = |run: &String| {
        let (user, run) = (user.clone(), run.clone());
        async move {
            let mut ends = Vec::new();
            for task in user.tasks(&run).await? {
                ends.extend(ends_of(&user.task(&run, &task.task_id).await?));
            }
            anyhow::Ok(ends)
        }
    };
    let all: Vec<Vec<(String, AttemptEnd)>> = stream::iter(runs.iter().map(of_run))
        .buffer_unordered(READERS)
        .try_collect()
        .await?;
    Ok(all.into_iter().flatten().collect())
}

fn ends_of(task: &api::GetTaskResponse) -> Vec<(String, AttemptEnd)> {
    let given_up = |number: u32| {
        let own = task
            .history
            .iter()
            .filter(|change| change.attempt == number);
        own.map(api::TaskTransition::reason)
            .find(|reason| explains(*reason))
    };
    let end = |attempt: &api::Attempt| match (attempt.outcome(), attempt.late) {
        (outcome, false) if outcome != Outcome::Unspecified => AttemptEnd::Counted,
        _ => given_up(attempt.attempt).map_or(AttemptEnd::Open, AttemptEnd::GivenUp),
    };
    task.attempts
        .iter()
        .map(|attempt| (attempt.attempt_id.clone(), end(attempt)))
        .collect()
}

/// Whether this reason explains that an attempt began and does not count.
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

/// Compares the lines of the journal with the ends of all attempts and the times at which Postgres
/// was killed.
pub fn compare(
    lines: &[Line],
    ends: &HashMap<String, AttemptEnd>,
    kills: &[SystemTime],
) -> Comparison {
    let mut comparison = Comparison::default();
    let mut of_attempt: HashMap<&str, Vec<&Line>> = HashMap::new();
    for line in lines {
        of_attempt.entry(&line.attempt).or_default().push(line);
    }
    for (attempt, lines) in &of_attempt {
        comparison.check_sessions(attempt, lines);
        if !ends.contains_key(*attempt) {
            comparison.add_unknown(lines, kills);
        }
    }
    for (attempt, end) in ends {
        let count = of_attempt.get(attempt.as_str()).map_or(0, Vec::len);
        comparison.add_known(attempt, *end, count);
    }
    comparison
}

impl Comparison {
    /// A process must recognize an attempt that it has begun.
    fn check_sessions(&mut self, attempt: &str, lines: &[&Line]) {
        let mut sessions: Vec<&str> = lines.iter().map(|line| line.session.as_str()).collect();
        sessions.sort_unstable();
        if let Some(pair) = sessions.windows(2).find(|pair| pair[0] == pair[1]) {
            self.faults
                .push(format!("{attempt} began twice in session {}", pair[0]));
        }
    }

    fn add_known(&mut self, attempt: &str, end: AttemptEnd, lines: usize) {
        match (end, lines) {
            (AttemptEnd::Counted, 1) => self.counted += 1,
            (AttemptEnd::Counted, lines) => self
                .faults
                .push(format!("{attempt} counts and has {lines} lines")),
            (AttemptEnd::Open, 1..) => {
                self.faults.push(format!(
                    "{attempt} began, and nothing explains why it does not count"
                ));
            }
            (AttemptEnd::GivenUp(reason), lines @ 1..) => {
                *self.explained.entry(reason.as_str_name()).or_default() += lines;
            }
            (AttemptEnd::Open | AttemptEnd::GivenUp(_), 0) => {}
        }
    }

    fn add_unknown(&mut self, lines: &[&Line], kills: &[SystemTime]) {
        for line in lines {
            if kills.iter().any(|kill| line.is_near(kill)) {
                *self.explained.entry("POSTGRES_KILLED").or_default() += 1;
            } else {
                self.faults
                    .push(format!("Servo does not know the attempt of {line:?}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(n: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(n)
    }

    /// Lines as attempt, session and second; Postgres was killed in second 100, if at all.
    #[track_caller]
    fn check(
        lines: &[(&str, &str, u64)],
        ends: &[(&str, AttemptEnd)],
        killed: bool,
        faults: usize,
    ) {
        let line = |(attempt, session, at): &(&str, &str, u64)| {
            Line::parse(&format!("task {attempt} {session} {}", at * 1_000_000)).unwrap()
        };
        let lines: Vec<Line> = lines.iter().map(line).collect();
        let ends = ends
            .iter()
            .map(|(attempt, end)| ((*attempt).to_owned(), *end))
            .collect();
        let kills: Vec<SystemTime> = killed.then(|| second(100)).into_iter().collect();
        let comparison = compare(&lines, &ends, &kills);
        assert_eq!(comparison.faults.len(), faults, "{comparison:?}");
    }

    #[test]
    fn counted_attempts_have_one_line_and_others_need_a_reason() {
        let lost = AttemptEnd::GivenUp(TransitionReason::HeartbeatTimeout);
        let (a, b, x) = (("a", "s", 1), ("b", "s", 2), ("x", "s", 3));
        check(&[a], &[("a", AttemptEnd::Counted)], false, 0);
        check(&[], &[("a", AttemptEnd::Counted)], false, 1);
        check(&[a, ("a", "t", 1)], &[("a", AttemptEnd::Counted)], true, 1);
        check(
            &[a, b],
            &[("a", lost), ("b", AttemptEnd::Counted)],
            false,
            0,
        );
        check(&[a], &[("a", AttemptEnd::Open)], false, 1);
        check(&[], &[("a", AttemptEnd::Open)], false, 0);
        check(&[x], &[], false, 1);
    }

    #[test]
    fn a_process_may_begin_an_attempt_only_once() {
        let lost = AttemptEnd::GivenUp(TransitionReason::HeartbeatTimeout);
        check(&[("a", "s", 1), ("a", "t", 1)], &[("a", lost)], false, 0);
        check(&[("a", "s", 1), ("a", "s", 5)], &[("a", lost)], false, 1);
        check(&[("x", "s", 100), ("x", "s", 101)], &[], true, 1);
    }

    #[test]
    fn a_kill_of_postgres_explains_only_attempts_that_began_near_it() {
        check(&[("x", "s", 99)], &[], true, 0);
        check(&[("x", "s", 101)], &[], true, 0);
        check(&[("x", "s", 90)], &[], true, 1);
        check(&[("x", "s", 110)], &[], true, 1);
        check(&[("x", "s", 99), ("x", "s2", 110)], &[], true, 1);
    }
}
