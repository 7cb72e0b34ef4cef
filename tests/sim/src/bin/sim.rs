//! Runs seeds: many of them, one with its trace, or many with a planted bug that they must find.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;
use serde_json::{Map, Value, json};
use servo_sim::permutations::{Permuted, conflicting_pairs, permute};
use servo_sim::stats::FAULT_PERCENT;
use servo_sim::{Bug, Stats, run_seed};

/// A bug must be found within this many seeds.
const SEEDS_PER_BUG: u64 = 1_000;
/// One of this many seeds runs twice, to check that a seed is deterministic.
const REPEAT_EVERY: u64 = 100;
/// How many orders of one run's events are folded.
const ORDERS_PER_RUN: u64 = 20;

#[derive(Parser)]
struct Args {
    /// How many seeds to run.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// How many random orders of runs' events, with repeats, to fold.
    #[arg(long, default_value_t = 1_000_000)]
    permutations: u64,
    /// Run only this seed and print its trace.
    #[arg(long)]
    seed: Option<u64>,
    /// Plant the bug with this number and search for it.
    #[arg(long, default_value_t = 0)]
    bug: usize,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let Some(bug) = Bug::numbered(args.bug) else {
        eprintln!(
            "BUG is {}; there are bugs 1 to {}",
            args.bug,
            Bug::ALL.len()
        );
        return ExitCode::FAILURE;
    };
    match (args.seed, bug) {
        (Some(seed), bug) => replay(seed, bug),
        (None, Bug::None) => match fold_in_any_order(args.permutations) {
            Ok(permuted) => play(args.seeds, permuted),
            Err(violation) => {
                println!("{violation}");
                ExitCode::FAILURE
            }
        },
        (None, bug) => find_bug(bug),
    }
}

fn replay(seed: u64, bug: Bug) -> ExitCode {
    let outcome = run_seed(seed, bug, true);
    outcome.trace.iter().for_each(|line| println!("{line}"));
    println!(
        "seed {seed}: {} events, trace {:016x}",
        outcome.stats.events, outcome.hash
    );
    match outcome.violation {
        Some(violation) => {
            println!("seed {seed}: {violation}");
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}

/// Checks INV-1 and INV-2 of the fold. Returns the counts for the last line.
fn fold_in_any_order(permutations: u64) -> Result<Value, String> {
    let begun = Instant::now();
    let pairs = conflicting_pairs()?;
    let next = AtomicU64::new(1);
    let runs = permutations.div_ceil(ORDERS_PER_RUN);
    let submission = || -> Result<Permuted, String> {
        let mut permuted = Permuted::default();
        loop {
            match next.fetch_add(1, Ordering::Relaxed) {
                seed if seed > runs => return Ok(permuted),
                seed => permuted.add(
                    permute(seed, ORDERS_PER_RUN)
                        .map_err(|found| format!("run {seed}: {found}"))?,
                ),
            }
        }
    };
    let mut total = Permuted::default();
    for part in on_each_core(submission) {
        total.add(part?);
    }
    let judged: u64 = pairs.values().sum();
    println!("conflicting pairs by what came first: {pairs:?}");
    println!(
        "permutations: {} orders of {runs} runs' events in {:.1} s, {} events, {} of them moved, {} repeated; \
         {judged} conflicting pairs, each in both orders",
        total.orders,
        begun.elapsed().as_secs_f64(),
        total.events,
        total.moved,
        total.repeated
    );
    Ok(
        json!({ "permutations": total.orders, "conflicting_pairs": judged, "pairs_by_first": pairs }),
    )
}

/// Without a bug, every seed must succeed. The last line of the output is JSON.
fn play(seeds: u64, mut counts: Value) -> ExitCode {
    let begun = Instant::now();
    let (total, failed) = on_all_cores(seeds, Bug::None, false);
    println!(
        "simulation: {seeds} seeds in {:.1} s, {} recorded, {} shards lost, {} changes of admission, \
         {} stale claims refused, {} lost commits, {} conflicts of run keys",
        begun.elapsed().as_secs_f64(),
        total.recorded,
        total.shards_moved,
        total.admission_moved,
        total.stale_claims,
        total.lost_commits,
        total.conflicts
    );
    let rare = total.rare(seeds);
    if !rare.is_empty() {
        println!("too rare: {rare:?} occur in less than {FAULT_PERCENT} % of the seeds");
    }
    let missing = total.missing();
    if !missing.is_empty() {
        println!("no seed produced these reasons: {}", missing.join(", "));
    }
    for (seed, violation) in &failed {
        println!("seed {seed}: {violation}\n  replay: make sim SEED={seed}");
    }
    let faults: Map<String, Value> = total
        .faults
        .iter()
        .map(|(fault, count)| (format!("{fault:?}"), json!(count)))
        .collect();
    let reasons: Map<String, Value> = total
        .reasons
        .iter()
        .map(|(reason, count)| (reason.to_string(), json!(count)))
        .collect();
    counts["seeds"] = json!(seeds);
    counts["violations"] = json!(failed.len());
    counts["events"] = json!(total.events);
    counts["runs"] = json!(total.runs);
    counts["tasks"] = json!(total.tasks);
    counts["faults"] = Value::Object(faults);
    counts["reasons"] = Value::Object(reasons);
    println!("{counts}");
    let held = failed.is_empty() && rare.is_empty() && missing.is_empty();
    if held {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// With a bug, some seed must fail.
fn find_bug(bug: Bug) -> ExitCode {
    let (_, found) = on_all_cores(SEEDS_PER_BUG, bug, true);
    match found.first() {
        Some((seed, violation)) => {
            println!("{}: found by seed {seed}: {violation}", bug.description());
            ExitCode::SUCCESS
        }
        None => {
            println!("{}: not found in {SEEDS_PER_BUG} seeds", bug.description());
            ExitCode::FAILURE
        }
    }
}

fn on_all_cores(seeds: u64, bug: Bug, first_only: bool) -> (Stats, Vec<(u64, String)>) {
    let (next, stop) = (AtomicU64::new(1), AtomicBool::new(false));
    let submission = || {
        let (mut total, mut failed) = (Stats::default(), Vec::new());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > seeds || stop.load(Ordering::Relaxed) {
                return (total, failed);
            }
            let outcome = run_seed(seed, bug, false);
            total.add(&outcome.stats);
            let another =
                seed % REPEAT_EVERY == 0 && run_seed(seed, bug, false).hash != outcome.hash;
            let another = another.then(|| "a second run of the seed gave another trace".to_owned());
            let too_calm = outcome.stats.too_calm().filter(|_| bug == Bug::None);
            if let Some(violation) = outcome.violation.or(another).or(too_calm) {
                stop.store(first_only, Ordering::Relaxed);
                failed.push((seed, violation));
            }
        }
    };
    let (mut total, mut failed) = (Stats::default(), Vec::new());
    for (part, found) in on_each_core(submission) {
        total.merge(&part);
        failed.extend(found);
    }
    failed.sort();
    (total, failed)
}

fn on_each_core<T: Send>(submission: impl Fn() -> T + Sync) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(&submission)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a seed panicked"))
            .collect()
    })
}
