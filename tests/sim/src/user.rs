//! Users and other services: they ask for runs, cancel, pause, resume and force, and repeat what was not answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_model::RunId;
use servo_model::states::RunState;
use servo_scheduler::core::{Event, Refusal, Verdict};

use crate::env::{Env, Message};
use crate::ledger::{Appended, Body, Key, NewEvent, Store};
use crate::plan::Plan;
use crate::scheduler::{self, Ask, Done, Reply, ToScheduler, Work};
use crate::{MS, SECOND};

/// Appends of other services come from this one.
pub const AUTOMATION: usize = 99;
const PATIENCE: i64 = 800 * MS;

#[derive(Debug, Clone)]
pub enum ToUser {
    Trigger(RunId),
    /// Somebody asks for another run under the key of this one.
    Rival(RunId),
    Control(RunId, Deed),
    Answer(u64, Option<Key>, Done),
    Appended(u64, Result<Appended, ()>),
    Again(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    Cancel,
    CancelBySystem,
    Pause,
    Resume,
    ForceCancel,
}

#[derive(Debug, Clone)]
enum Wish {
    Run(Arc<Plan>),
    Rival(Arc<Plan>),
    Request(Arc<Plan>),
    Plan(Arc<Plan>),
    Control(RunId, Deed),
}

#[derive(Default)]
pub struct Users {
    wishes: BTreeMap<u64, Wish>,
    /// Runs that somebody was told to be accepted.
    pub accepted: Vec<RunId>,
}

impl Users {
    pub fn take(&mut self, message: ToUser, env: &mut Env) {
        match message {
            ToUser::Trigger(run) => {
                let Some(plan) = env.plans.get(&run).cloned() else {
                    return;
                };
                let others = plan.requested_by_others;
                self.wish(
                    if others {
                        Wish::Request(plan)
                    } else {
                        Wish::Run(plan)
                    },
                    env,
                );
            }
            // The first request decides; until it has, there is nobody to be the rival of.
            ToUser::Rival(run) if !self.accepted.contains(&run) => {
                env.plan(PATIENCE, Message::User(ToUser::Rival(run)));
            }
            ToUser::Rival(run) => {
                if let Some(plan) = env.plans.get(&run) {
                    let rival = Arc::new(plan.rival());
                    self.wish(Wish::Rival(rival), env);
                }
            }
            ToUser::Control(run, deed) => self.wish(Wish::Control(run, deed), env),
            ToUser::Answer(ask, key, done) => self.answered(ask, key, &done, env),
            ToUser::Appended(ask, Ok(_)) => {
                if let Some(Wish::Request(plan)) = self.wishes.remove(&ask) {
                    self.accept(plan.run_id(), env);
                    scheduler::ring(plan.run_id().shard(), env);
                    self.wish(Wish::Plan(plan), env);
                }
            }
            ToUser::Appended(_, Err(())) => {}
            ToUser::Again(ask) => self.ask(ask, env),
        }
    }

    fn accept(&mut self, run: RunId, env: &mut Env) {
        if !self.accepted.contains(&run) {
            self.accepted.push(run);
            env.promised.push((Key::Requested(run), "a user"));
        }
    }

    fn wish(&mut self, wish: Wish, env: &mut Env) {
        let ask = env.number();
        self.wishes.insert(ask, wish);
        self.ask(ask, env);
    }

    fn ask(&mut self, ask: u64, env: &mut Env) {
        let Some(wish) = self.wishes.get(&ask) else {
            return;
        };
        env.plan(PATIENCE, Message::User(ToUser::Again(ask)));
        if env.database_is_down() {
            return;
        }
        let wanted = match wish {
            Wish::Request(plan) => {
                let event = of_run(
                    plan,
                    Key::Requested(plan.run_id()),
                    Body::Requested(plan.header.clone()),
                    env,
                );
                let event = Box::new(event);
                return env.store(Store::Append {
                    by: (AUTOMATION, 0),
                    call: ask,
                    event,
                    commit_after: 0,
                });
            }
            Wish::Run(plan) | Wish::Rival(plan) => Some(Ask::Run(plan.clone())),
            Wish::Plan(plan) => {
                let body = match plan.unplannable {
                    true => Event::PlanFailed {
                        message: "no such asset".to_owned(),
                    },
                    false => Event::PlanCreated {
                        graph: plan.graph.clone(),
                    },
                };
                Some(Ask::Event(of_run(
                    plan,
                    Key::Planned(plan.run_id()),
                    Body::Core(body),
                    env,
                )))
            }
            Wish::Control(run, deed) => control(*run, *deed, env).map(Ask::Event),
        };
        let Some(wanted) = wanted else {
            self.wishes.remove(&ask);
            return;
        };
        let key = if let Ask::Event(event) = &wanted {
            Some(event.key)
        } else {
            None
        };
        let shard = wanted.run().shard();
        if let Some(holder) = scheduler::holder_of(shard, env) {
            let work = Work {
                shard,
                asks: vec![wanted],
                reply: Reply::User { ask, key },
            };
            env.call(Message::Scheduler(holder, ToScheduler::Work(work)));
        }
    }

    fn answered(&mut self, ask: u64, key: Option<Key>, done: &Done, env: &mut Env) {
        let Some(wish) = self.wishes.get(&ask).cloned() else {
            return;
        };
        let refused = matches!(done, Done::Core(Verdict::Refused(why)) if !matches!(why, Refusal::Version(_)));
        let counts = matches!(
            done,
            Done::Core(Verdict::Folded | Verdict::Duplicate) | Done::Exists
        );
        env.note(format_args!("a user is answered {done:?}"));
        match (wish, done) {
            (Wish::Run(plan), _) if counts => self.accept(plan.run_id(), env),
            (Wish::Rival(_), Done::Conflict) => env.stats.conflicts += 1,
            (Wish::Rival(plan), _) if counts => {
                let why = format!(
                    "{} was begun by two requests under one key (12)",
                    plan.run_id()
                );
                env.ledger.violation = Some(why);
            }
            (Wish::Plan(_), _) if counts || refused => {}
            (Wish::Control(..), Done::Core(Verdict::Folded)) => {
                env.promised.extend(key.map(|key| (key, "a user")));
            }
            (Wish::Control(..), _) if counts || refused => {}
            _ => return,
        }
        self.wishes.remove(&ask);
    }
}

fn of_run(plan: &Plan, key: Key, body: Body, env: &mut Env) -> NewEvent {
    let run = plan.run_id();
    NewEvent {
        id: env.number(),
        shard: run.shard(),
        run,
        key,
        body,
        admission_epoch: 0,
        judged_at: 0,
    }
}

/// The event that does it, by what the rows say now; `None` when there is nothing to do.
fn control(run: RunId, deed: Deed, env: &mut Env) -> Option<NewEvent> {
    let now = env.now;
    let row = env.ledger.rows.get(&run)?;
    let version = row.run.version + 1;
    let running = |state: RunState| {
        matches!(
            state,
            RunState::Running | RunState::Paused | RunState::Pending
        )
    };
    let body = match deed {
        Deed::Cancel | Deed::CancelBySystem => {
            running(row.run.state).then_some(())?;
            Event::CancelRequested {
                version,
                by_system: deed == Deed::CancelBySystem,
            }
        }
        Deed::Pause => (row.run.state == RunState::Running && env.rough)
            .then_some(Event::Paused { version })?,
        Deed::Resume => {
            (row.run.state == RunState::Paused).then_some(Event::Resumed { version })?
        }
        Deed::ForceCancel => {
            let beats = &env.beats;
            let heard = |id: &servo_model::AttemptId| {
                beats
                    .get(id)
                    .and_then(|beats| beats.last())
                    .is_some_and(|beat| beat + SECOND > now)
            };
            let silent = row
                .cells
                .iter()
                .filter(|(_, cell)| cell.state.has_attempt());
            let (task, attempt_id) = silent
                .filter_map(|(slot, cell)| Some((*slot, cell.attempt_id?)))
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
        admission_epoch: 0,
        judged_at: 0,
    })
}
