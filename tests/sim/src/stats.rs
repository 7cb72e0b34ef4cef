//! What a seed saw: counts that show that the world was rough enough.

use std::collections::BTreeMap;

use servo_model::states::TransitionReason;

use crate::faults::Fault;

#[derive(Debug, Clone, Default)]
pub struct Stats {
    pub events: u64,
    pub runs: u64,
    pub tasks: u64,
    pub recorded: u64,
    pub shards_moved: u64,
    pub admission_moved: u64,
    pub stale_claims: u64,
    pub lost_commits: u64,
    pub faults: BTreeMap<Fault, u64>,
    /// In how many seeds each kind struck.
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

    /// Adds what one seed saw.
    pub fn add(&mut self, seed: &Stats) {
        self.events += seed.events;
        self.runs += seed.runs;
        self.tasks += seed.tasks;
        self.recorded += seed.recorded;
        self.shards_moved += seed.shards_moved;
        self.admission_moved += seed.admission_moved;
        self.stale_claims += seed.stale_claims;
        self.lost_commits += seed.lost_commits;
        for (fault, count) in &seed.faults {
            *self.faults.entry(*fault).or_default() += count;
            *self.seeds_with.entry(*fault).or_default() += 1;
        }
        for (reason, count) in &seed.reasons {
            *self.reasons.entry(*reason).or_default() += count;
        }
    }

    /// Adds what another thread has added up.
    pub fn merge(&mut self, other: &Stats) {
        let seeds_with = std::mem::take(&mut self.seeds_with);
        self.add(other);
        self.seeds_with = seeds_with;
        for (fault, count) in &other.seeds_with {
            *self.seeds_with.entry(*fault).or_default() += count;
        }
    }

    /// Reasons of the closed list that no seed showed.
    pub fn missing(&self) -> Vec<&'static str> {
        let missing = TransitionReason::ALL.iter().filter(|reason| !self.reasons.contains_key(reason));
        missing.map(|reason| reason.name()).collect()
    }
}
