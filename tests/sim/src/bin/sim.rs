//! Plays seeds: all of them, one with its story, or many with a bug that they must find.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;
use servo_sim::faults::Fault;
use servo_sim::{Bug, Stats, run_seed};

/// A bug must be found within this many seeds.
const SEEDS_PER_BUG: u64 = 1_000;
/// Of so many seeds one is played twice, to see that it is the same world.
const TWICE_EVERY: u64 = 100;
/// Each fault must strike in this share of the seeds.
const FAULT_PERCENT: u64 = 5;

#[derive(Parser)]
struct Args {
    /// How many seeds are played.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// Play this one alone and tell its story.
    #[arg(long)]
    seed: Option<u64>,
    /// Plant the bug of this number and look for it.
    #[arg(long, default_value_t = 0)]
    bug: usize,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let Some(bug) = Bug::numbered(args.bug) else {
        eprintln!("BUG is {}; there are bugs 1 to {}", args.bug, Bug::ALL.len());
        return ExitCode::FAILURE;
    };
    match (args.seed, bug) {
        (Some(seed), bug) => replay(seed, bug),
        (None, Bug::None) => play(args.seeds),
        (None, bug) => hunt(bug),
    }
}

fn replay(seed: u64, bug: Bug) -> ExitCode {
    let outcome = run_seed(seed, bug, true);
    outcome.story.iter().for_each(|line| println!("{line}"));
    println!("seed {seed}: {} events, trace {:016x}", outcome.stats.events, outcome.hash);
    match outcome.violation {
        Some(violation) => {
            println!("seed {seed}: {violation}");
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}

/// Without a bug: every seed must hold.
fn play(seeds: u64) -> ExitCode {
    let begun = Instant::now();
    let (total, failed) = on_all_cores(seeds, Bug::None, false);
    println!(
        "simulation: {seeds} seeds in {:.1} s, {} events, {} recorded, {} runs, {} tasks, {} shards lost, \
         {} changes of admission, {} stale claims refused, {} lost commits",
        begun.elapsed().as_secs_f64(),
        total.events,
        total.recorded,
        total.runs,
        total.tasks,
        total.shards_moved,
        total.admission_moved,
        total.stale_claims,
        total.lost_commits
    );
    let faults: Vec<String> =
        total.faults.iter().map(|(fault, count)| format!("{fault:?} {count}")).collect();
    println!("faults: {}", faults.join(", "));
    let reasons: Vec<String> =
        total.reasons.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    println!("reasons: {}", reasons.join(", "));
    println!("reasons that no seed showed: {}", total.missing().join(", "));
    let rare =
        |fault: &&Fault| total.seeds_with.get(fault).copied().unwrap_or(0) * 100 < seeds * FAULT_PERCENT;
    let rare: Vec<&Fault> = Fault::ALL.iter().filter(rare).collect();
    if !rare.is_empty() {
        println!("too rare: {rare:?} strike in less than {FAULT_PERCENT} % of the seeds");
    }
    for (seed, violation) in &failed {
        println!("seed {seed}: {violation}\n  replay: make sim SEED={seed}");
    }
    if failed.is_empty() && rare.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// With a bug: some seed must not hold.
fn hunt(bug: Bug) -> ExitCode {
    let (_, found) = on_all_cores(SEEDS_PER_BUG, bug, true);
    match found.first() {
        Some((seed, violation)) => {
            println!("{}: found by seed {seed}: {violation}", bug.says());
            ExitCode::SUCCESS
        }
        None => {
            println!("{}: not found in {SEEDS_PER_BUG} seeds", bug.says());
            ExitCode::FAILURE
        }
    }
}

fn on_all_cores(seeds: u64, bug: Bug, first_only: bool) -> (Stats, Vec<(u64, String)>) {
    let (next, stop) = (AtomicU64::new(1), AtomicBool::new(false));
    let work = || {
        let (mut total, mut failed) = (Stats::default(), Vec::new());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > seeds || stop.load(Ordering::Relaxed) {
                return (total, failed);
            }
            let outcome = run_seed(seed, bug, false);
            total.add(&outcome.stats);
            let another = seed % TWICE_EVERY == 0 && run_seed(seed, bug, false).hash != outcome.hash;
            let another = another.then(|| "played twice, it was another world".to_owned());
            if let Some(violation) = outcome.violation.or(another) {
                stop.store(first_only, Ordering::Relaxed);
                failed.push((seed, violation));
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let parts: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a seed panicked")).collect()
    });
    let (mut total, mut failed) = (Stats::default(), Vec::new());
    for (part, found) in parts {
        total.merge(&part);
        failed.extend(found);
    }
    failed.sort();
    (total, failed)
}
