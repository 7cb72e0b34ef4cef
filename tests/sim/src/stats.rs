//! Counts of a seed, which show that enough faults occurred.

use std::collections::BTreeMap;

use servo_model::states::TransitionReason;

use crate::faults::Fault;

/// Each fault must occur in this share of the seeds.
pub const FAULT_PERCENT: u64 = 5;
pub const RUNS_MIN: u64 = 3;
pub const TASKS_MIN: u64 = 30;
const FAULTS_MIN: u64 = 20;

#[derive(Debug, Clone, Default)]
pub struct Stats {
    pub events: u64,
    pub runs: u64,
    /// The tasks of runs that get a plan.
    pub tasks: u64,
    pub recorded: u64,
    pub shards_moved: u64,
    pub admission_moved: u64,
    pub stale_claims: u64,
    pub lost_commits: u64,
    /// Requests under the key of another run.
    pub conflicts: u64,
    /// The faults that had an effect.
    pub faults: BTreeMap<Fault, u64>,
    /// In how many seeds each fault occurred.
    pub seeds_with: BTreeMap<Fault, u64>,
    pub reasons: BTreeMap<TransitionReason, u64>,
}

impl Stats {
    pub fn fault(&mut self, fault: Fault) {
        *self.faults.entry(fault).or_default() += 1;
    }

    pub fn reason(&mut self, reason: TransitionReason) {
        *self.reasons.entry(reason).or_default() += 1;
    }

    /// Adds the counts of one seed.
    pub fn add(&mut self, seed: &Stats) {
        self.events += seed.events;
        self.runs += seed.runs;
        self.tasks += seed.tasks;
        self.recorded += seed.recorded;
        self.shards_moved += seed.shards_moved;
        self.admission_moved += seed.admission_moved;
        self.stale_claims += seed.stale_claims;
        self.lost_commits += seed.lost_commits;
        self.conflicts += seed.conflicts;
        for (fault, count) in &seed.faults {
            *self.faults.entry(*fault).or_default() += count;
            *self.seeds_with.entry(*fault).or_default() += 1;
        }
        for (reason, count) in &seed.reasons {
            *self.reasons.entry(*reason).or_default() += count;
        }
    }

    /// Adds the sums of another thread.
    pub fn merge(&mut self, other: &Stats) {
        let seeds_with = std::mem::take(&mut self.seeds_with);
        self.add(other);
        self.seeds_with = seeds_with;
        for (fault, count) in &other.seeds_with {
            *self.seeds_with.entry(*fault).or_default() += count;
        }
    }

    /// The faults that occurred in too few seeds.
    pub fn rare(&self, seeds: u64) -> Vec<Fault> {
        let seeds_with = |fault: &Fault| self.seeds_with.get(fault).copied().unwrap_or(0);
        Fault::ALL
            .into_iter()
            .filter(|fault| seeds_with(fault) * 100 < seeds * FAULT_PERCENT)
            .collect()
    }

    /// Reports a seed with too few runs, tasks or faults.
    pub fn too_calm(&self) -> Option<String> {
        let faults: u64 = self.faults.values().sum();
        let too_calm = self.runs < RUNS_MIN || self.tasks < TASKS_MIN || faults < FAULTS_MIN;
        too_calm.then(|| {
            format!(
                "too few: {} runs, {} tasks, {faults} faults",
                self.runs, self.tasks
            )
        })
    }

    /// The transition reasons that no seed produced.
    pub fn missing(&self) -> Vec<&'static str> {
        let missing = TransitionReason::ALL
            .iter()
            .filter(|reason| !self.reasons.contains_key(reason));
        missing.map(|reason| reason.name()).collect()
    }
}
