//! What workers say they began, held against what Servo says about it.
//!
//! The journal is a file outside of Servo with one line per attempt that began. An attempt whose outcome counted has
//! exactly one line. A line whose attempt did not count must be explained: its worker was not heard of, it was not
//! started in time, it was cancelled, or the Postgres that had not stored its claim yet was killed just then. However
//! often an envelope is delivered, a process begins an attempt once.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt, TryStreamExt};
use servo_client::api::{self, Outcome, TransitionReason};

use crate::user::User;

const READERS: usize = 16;
/// How far from a kill of Postgres a line may stand that it explains. A claim is on disk a few hundred milliseconds after
/// it was made; one that is not may still be on its way to its worker when Postgres dies.
const KILL_EXPLAINS: Duration = Duration::from_secs(2);

/// A process began an attempt.
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
        apart <= KILL_EXPLAINS
    }
}

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

pub fn read(path: &Path) -> Result<Vec<Line>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    text.lines()
        .map(|line| Line::parse(line).with_context(|| format!("read the line `{line}`")))
        .collect()
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
    let all: Vec<Vec<(String, Fate)>> = stream::iter(runs.iter().map(of_run))
        .buffer_unordered(READERS)
        .try_collect()
        .await?;
    Ok(all.into_iter().flatten().collect())
}

fn fates_of(told: &api::GetTaskResponse) -> Vec<(String, Fate)> {
    let given_up = |number: u32| {
        let own = told
            .history
            .iter()
            .filter(|change| change.attempt == number);
        own.map(api::TaskTransition::reason)
            .find(|reason| explains(*reason))
    };
    let fate = |attempt: &api::Attempt| match (attempt.outcome(), attempt.late) {
        (outcome, false) if outcome != Outcome::Unspecified => Fate::Counted,
        _ => given_up(attempt.attempt).map_or(Fate::Open, Fate::GivenUp),
    };
    told.attempts
        .iter()
        .map(|attempt| (attempt.attempt_id.clone(), fate(attempt)))
        .collect()
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

/// Holds the journal's lines against the fates of all attempts, and against when Postgres was killed.
pub fn compare(lines: &[Line], fates: &HashMap<String, Fate>, kills: &[SystemTime]) -> Tally {
    let mut tally = Tally::default();
    let mut of_attempt: HashMap<&str, Vec<&Line>> = HashMap::new();
    for line in lines {
        of_attempt.entry(&line.attempt).or_default().push(line);
    }
    for (attempt, lines) in &of_attempt {
        tally.check_sessions(attempt, lines);
        if !fates.contains_key(*attempt) {
            tally.unknown(lines, kills);
        }
    }
    for (attempt, fate) in fates {
        let count = of_attempt.get(attempt.as_str()).map_or(0, Vec::len);
        tally.known(attempt, *fate, count);
    }
    tally
}

impl Tally {
    /// A process that begins an attempt twice did not know it again.
    fn check_sessions(&mut self, attempt: &str, lines: &[&Line]) {
        let mut sessions: Vec<&str> = lines.iter().map(|line| line.session.as_str()).collect();
        sessions.sort_unstable();
        if let Some(pair) = sessions.windows(2).find(|pair| pair[0] == pair[1]) {
            self.faults
                .push(format!("{attempt} began twice in session {}", pair[0]));
        }
    }

    fn known(&mut self, attempt: &str, fate: Fate, lines: usize) {
        match (fate, lines) {
            (Fate::Counted, 1) => self.counted += 1,
            (Fate::Counted, lines) => self
                .faults
                .push(format!("{attempt} counts and has {lines} lines")),
            (Fate::Open, 1..) => {
                self.faults.push(format!(
                    "{attempt} began, and nothing says what became of it"
                ));
            }
            (Fate::GivenUp(reason), lines @ 1..) => {
                *self.explained.entry(reason.as_str_name()).or_default() += lines;
            }
            (Fate::Open | Fate::GivenUp(_), 0) => {}
        }
    }

    fn unknown(&mut self, lines: &[&Line], kills: &[SystemTime]) {
        for line in lines {
            match kills.iter().any(|kill| line.is_near(kill)) {
                true => *self.explained.entry("POSTGRES_KILLED").or_default() += 1,
                false => self
                    .faults
                    .push(format!("Servo knows nothing about what began as {line:?}")),
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
    fn check(lines: &[(&str, &str, u64)], fates: &[(&str, Fate)], killed: bool, faults: usize) {
        let line = |(attempt, session, at): &(&str, &str, u64)| {
            Line::parse(&format!("task {attempt} {session} {}", at * 1_000_000)).unwrap()
        };
        let lines: Vec<Line> = lines.iter().map(line).collect();
        let fates = fates
            .iter()
            .map(|(attempt, fate)| ((*attempt).to_owned(), *fate))
            .collect();
        let kills: Vec<SystemTime> = killed.then(|| second(100)).into_iter().collect();
        let tally = compare(&lines, &fates, &kills);
        assert_eq!(tally.faults.len(), faults, "{tally:?}");
    }

    #[test]
    fn what_counts_has_one_line_and_the_rest_a_reason() {
        let lost = Fate::GivenUp(TransitionReason::HeartbeatTimeout);
        let (a, b, x) = (("a", "s", 1), ("b", "s", 2), ("x", "s", 3));
        check(&[a], &[("a", Fate::Counted)], false, 0);
        check(&[], &[("a", Fate::Counted)], false, 1);
        check(&[a, ("a", "t", 1)], &[("a", Fate::Counted)], true, 1);
        check(&[a, b], &[("a", lost), ("b", Fate::Counted)], false, 0);
        check(&[a], &[("a", Fate::Open)], false, 1);
        check(&[], &[("a", Fate::Open)], false, 0);
        check(&[x], &[], false, 1);
    }

    #[test]
    fn a_process_begins_an_attempt_once_even_if_it_is_given_up() {
        let lost = Fate::GivenUp(TransitionReason::HeartbeatTimeout);
        check(&[("a", "s", 1), ("a", "t", 1)], &[("a", lost)], false, 0);
        check(&[("a", "s", 1), ("a", "s", 5)], &[("a", lost)], false, 1);
        check(&[("x", "s", 100), ("x", "s", 101)], &[], true, 1);
    }

    #[test]
    fn a_kill_explains_what_began_around_it_and_nothing_else() {
        check(&[("x", "s", 99)], &[], true, 0);
        check(&[("x", "s", 101)], &[], true, 0);
        check(&[("x", "s", 90)], &[], true, 1);
        check(&[("x", "s", 110)], &[], true, 1);
        check(&[("x", "s", 99), ("x", "s2", 110)], &[], true, 1);
    }
}
