//! Faults and how they are injected.

use servo_model::Timestamp;

use crate::env::{Env, Message, ProcessId};
use crate::{MS, SECOND};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    KillScheduler,
    KillDispatcher,
    KillCallback,
    KillWorker,
    PauseScheduler,
    PauseDispatcher,
    PauseCallback,
    PauseWorker,
    BreakAdmission,
    BreakPull,
    CrashPostgres,
    DropMessage,
    DoubleMessage,
    LateMessage,
    LateCommit,
    UnknownCommit,
    LostDoorbell,
    WorkerLies,
    WorkerReportsTwice,
    WorkerSilent,
}

impl Fault {
    pub const ALL: [Fault; 20] = [
        Fault::KillScheduler,
        Fault::KillDispatcher,
        Fault::KillCallback,
        Fault::KillWorker,
        Fault::PauseScheduler,
        Fault::PauseDispatcher,
        Fault::PauseCallback,
        Fault::PauseWorker,
        Fault::BreakAdmission,
        Fault::BreakPull,
        Fault::CrashPostgres,
        Fault::DropMessage,
        Fault::DoubleMessage,
        Fault::LateMessage,
        Fault::LateCommit,
        Fault::UnknownCommit,
        Fault::LostDoorbell,
        Fault::WorkerLies,
        Fault::WorkerReportsTwice,
        Fault::WorkerSilent,
    ];

    /// The faults that occur at a scheduled time; the others affect messages and attempts.
    pub const TIMED: [Fault; 11] = [
        Fault::KillScheduler,
        Fault::KillDispatcher,
        Fault::KillCallback,
        Fault::KillWorker,
        Fault::PauseScheduler,
        Fault::PauseDispatcher,
        Fault::PauseCallback,
        Fault::PauseWorker,
        Fault::BreakAdmission,
        Fault::BreakPull,
        Fault::CrashPostgres,
    ];
}

/// Faults are injected until this time.
pub const FAULTS_UNTIL: Timestamp = Timestamp::from_unix_us(16 * SECOND);

/// Schedules the timed faults of a seed.
pub fn schedule(env: &mut Env) {
    let count = env.dice.between(20, 28);
    for _ in 0..count {
        let (fault, at) = (
            *env.dice.pick(&Fault::TIMED),
            env.dice.between(300 * MS, FAULTS_UNTIL.unix_us() - SECOND),
        );
        env.schedule(at, Message::Fault(fault));
    }
}

/// The process that a fault affects.
pub fn victim(fault: Fault, workers: usize, env: &mut Env) -> Option<ProcessId> {
    let instance = env.dice.below(2) as usize;
    Some(match fault {
        Fault::KillScheduler | Fault::PauseScheduler => ProcessId::Scheduler(instance),
        Fault::KillDispatcher | Fault::PauseDispatcher => ProcessId::Dispatcher(instance),
        Fault::KillCallback | Fault::PauseCallback => ProcessId::Callback(instance),
        Fault::KillWorker | Fault::PauseWorker => {
            ProcessId::Worker(env.dice.below(workers as u64) as usize)
        }
        _ => return None,
    })
}

/// Pauses a process: in half of the cases briefly, otherwise for longer than its leases last.
/// Returns `false` for a process that is down or already paused for longer.
pub fn pause(process_id: ProcessId, env: &mut Env) -> bool {
    let long = env.dice.percent(50);
    let lasts = if long {
        env.dice.between(3_000, 5_000)
    } else {
        env.dice.between(20, 1_000)
    } * MS;
    let until = env.now.plus_us(lasts);
    let stopped = match env.processes.get_mut(&process_id) {
        Some(process) if !process.down && process.paused_until < until => {
            process.paused_until = until;
            true
        }
        _ => false,
    };
    if stopped {
        env.note(format_args!(
            "{process_id:?} is paused until {}",
            until.unix_us()
        ));
    }
    stopped
}

/// Breaks a random open stream; returns `false` if there is none.
pub fn break_one(workers: bool, env: &mut Env) -> bool {
    let is_workers =
        |ends: &[ProcessId; 2]| ends.iter().any(|end| matches!(end, ProcessId::Worker(_)));
    let open = env
        .wires
        .iter()
        .filter(|(_, wire)| !wire.broken && is_workers(&wire.ends) == workers);
    let open: Vec<u64> = open.map(|(id, _)| *id).collect();
    if open.is_empty() {
        return false;
    }
    let wire = *env.dice.pick(&open);
    env.note(format_args!("stream {wire} breaks"));
    env.break_wire(wire);
    true
}
