//! Users and other services: they start, cancel, pause, resume and force cancel, and repeat
//! unanswered calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_model::states::RunState;
use servo_model::{Epoch, RunId, Timestamp};
use servo_scheduler::core::{Event, Refusal, Verdict};

use crate::env::{Env, Message};
use crate::ledger::{Appended, Body, Key, NewEvent, Store};
use crate::planned_run::PlannedRun;
use crate::scheduler::{self, Command, CommandResult, Reply, Submission, ToScheduler};
use crate::{MS, SECOND};

/// The service that appends requests.
pub const AUTOMATION: usize = 99;
const RETRY_DELAY: i64 = 800 * MS;

#[derive(Debug, Clone)]
pub enum ToUser {
    Trigger(RunId),
    /// Send a conflicting request under the key of this run.
    Conflicting(RunId),
    Control(RunId, RunAction),
    Answer(u64, Option<Key>, CommandResult),
    Appended(u64, Result<Appended, ()>),
    Again(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunAction {
    Cancel,
    CancelBySystem,
    Pause,
    Resume,
    ForceCancel,
}

#[derive(Debug, Clone)]
enum UserRequest {
    Run(Arc<PlannedRun>),
    Conflicting(Arc<PlannedRun>),
    Append(Arc<PlannedRun>),
    Plan(Arc<PlannedRun>),
    Control(RunId, RunAction),
}

#[derive(Default)]
pub struct Users {
    requests: BTreeMap<u64, UserRequest>,
    /// Runs that were acknowledged.
    pub accepted: Vec<RunId>,
}

impl Users {
    pub fn take(&mut self, message: ToUser, env: &mut Env) {
        match message {
            ToUser::Trigger(run) => {
                let Some(planned) = env.planned_runs.get(&run).cloned() else {
                    return;
                };
                let others = planned.requested_by_others;
                self.request(
                    if others {
                        UserRequest::Append(planned)
                    } else {
                        UserRequest::Run(planned)
                    },
                    env,
                );
            }
            // Waits until the first request is accepted, so that this one conflicts with it.
            ToUser::Conflicting(run) if !self.accepted.contains(&run) => {
                env.schedule(RETRY_DELAY, Message::User(ToUser::Conflicting(run)));
            }
            ToUser::Conflicting(run) => {
                if let Some(planned) = env.planned_runs.get(&run) {
                    let conflicting = Arc::new(planned.conflicting());
                    self.request(UserRequest::Conflicting(conflicting), env);
                }
            }
            ToUser::Control(run, action) => self.request(UserRequest::Control(run, action), env),
            ToUser::Answer(call, key, outcome) => self.answered(call, key, &outcome, env),
            ToUser::Appended(call, Ok(_)) => {
                if let Some(UserRequest::Append(planned)) = self.requests.remove(&call) {
                    self.accept(planned.run_id(), env);
                    scheduler::notify_holder(planned.run_id().shard(), env);
                    self.request(UserRequest::Plan(planned), env);
                }
            }
            ToUser::Appended(_, Err(())) => {}
            ToUser::Again(call) => self.call(call, env),
        }
    }

    fn accept(&mut self, run: RunId, env: &mut Env) {
        if !self.accepted.contains(&run) {
            self.accepted.push(run);
            env.promised.push((Key::Requested(run), "a user"));
        }
    }

    fn request(&mut self, request: UserRequest, env: &mut Env) {
        let call = env.number();
        self.requests.insert(call, request);
        self.call(call, env);
    }

    fn call(&mut self, call: u64, env: &mut Env) {
        let Some(request) = self.requests.get(&call) else {
            return;
        };
        env.schedule(RETRY_DELAY, Message::User(ToUser::Again(call)));
        if env.database_is_down() {
            return;
        }
        let command = match request {
            UserRequest::Append(planned) => {
                let event = of_run(
                    planned,
                    Key::Requested(planned.run_id()),
                    Body::Requested(planned.header.clone()),
                    env,
                );
                let event = Box::new(event);
                return env.store(Store::Append {
                    by: (AUTOMATION, 0),
                    call,
                    event,
                    commit_after: 0,
                });
            }
            UserRequest::Run(planned) | UserRequest::Conflicting(planned) => {
                Some(Command::Run(planned.clone()))
            }
            UserRequest::Plan(planned) => {
                let body = if planned.unplannable {
                    Event::PlanFailed {
                        message: "no such asset".to_owned(),
                    }
                } else {
                    Event::PlanCreated {
                        plan: planned.plan.clone(),
                    }
                };
                Some(Command::Event(of_run(
                    planned,
                    Key::Planned(planned.run_id()),
                    Body::Core(body),
                    env,
                )))
            }
            UserRequest::Control(run, action) => control(*run, *action, env).map(Command::Event),
        };
        let Some(command) = command else {
            self.requests.remove(&call);
            return;
        };
        let key = if let Command::Event(event) = &command {
            Some(event.key)
        } else {
            None
        };
        let shard = command.run().shard();
        if let Some(holder) = scheduler::holder_of(shard, env) {
            let submission = Submission {
                shard,
                commands: vec![command],
                reply: Reply::User { call, key },
            };
            env.call(Message::Scheduler(
                holder,
                ToScheduler::Submission(submission),
            ));
        }
    }

    fn answered(&mut self, call: u64, key: Option<Key>, result: &CommandResult, env: &mut Env) {
        let Some(request) = self.requests.get(&call).cloned() else {
            return;
        };
        let refused = matches!(result, CommandResult::Fold(Verdict::Refused(why)) if !matches!(why, Refusal::Version(_)));
        let counts = matches!(
            result,
            CommandResult::Fold(Verdict::Folded | Verdict::Duplicate) | CommandResult::Exists
        );
        env.note(format_args!("a user gets {result:?}"));
        match (request, result) {
            (UserRequest::Run(planned), _) if counts => self.accept(planned.run_id(), env),
            (UserRequest::Conflicting(_), CommandResult::Conflict) => env.stats.conflicts += 1,
            (UserRequest::Conflicting(planned), _) if counts => {
                let why = format!(
                    "{} was begun by two requests under one key (12)",
                    planned.run_id()
                );
                env.ledger.violation = Some(why);
            }
            (UserRequest::Plan(_), _) if counts || refused => {}
            (UserRequest::Control(..), CommandResult::Fold(Verdict::Folded)) => {
                env.promised.extend(key.map(|key| (key, "a user")));
            }
            (UserRequest::Control(..), _) if counts || refused => {}
            _ => return,
        }
        self.requests.remove(&call);
    }
}

fn of_run(planned: &PlannedRun, key: Key, body: Body, env: &mut Env) -> NewEvent {
    let run = planned.run_id();
    NewEvent {
        id: env.number(),
        shard: run.shard(),
        run,
        key,
        body,
        admission_epoch: Epoch::NEVER,
        judged_at: Timestamp::UNIX_EPOCH,
    }
}

/// The event of the action according to the rows; `None` when there is nothing to do.
fn control(run: RunId, action: RunAction, env: &mut Env) -> Option<NewEvent> {
    let now = env.now;
    let row = env.ledger.rows.get(&run)?;
    let version = row.run.version + 1;
    let running = |state: RunState| {
        matches!(
            state,
            RunState::Running | RunState::Paused | RunState::Pending
        )
    };
    let body = match action {
        RunAction::Cancel | RunAction::CancelBySystem => {
            running(row.run.state).then_some(())?;
            Event::CancelRequested {
                version,
                by_system: action == RunAction::CancelBySystem,
            }
        }
        RunAction::Pause => (row.run.state == RunState::Running && env.faults_on)
            .then_some(Event::Paused { version })?,
        RunAction::Resume => {
            (row.run.state == RunState::Paused).then_some(Event::Resumed { version })?
        }
        RunAction::ForceCancel => {
            let beats = &env.beats;
            let heard = |id: &servo_model::AttemptId| {
                beats
                    .get(id)
                    .and_then(|beats| beats.last())
                    .is_some_and(|beat| beat.plus_us(SECOND) > now)
            };
            let silent = row
                .task_rows
                .iter()
                .filter(|(_, task_row)| task_row.state.has_attempt());
            let (task, attempt_id) = silent
                .filter_map(|(task_ref, task_row)| Some((*task_ref, task_row.attempt_id?)))
                .find(|(_, id)| !heard(id))?;
            Event::ForceCancelled {
                task,
                attempt_id,
                version,
            }
        }
    };
    let key = Key::Control(run, version);
    Some(NewEvent {
        id: env.number(),
        shard: run.shard(),
        run,
        key,
        body: Body::Core(body),
        admission_epoch: Epoch::NEVER,
        judged_at: Timestamp::UNIX_EPOCH,
    })
}
