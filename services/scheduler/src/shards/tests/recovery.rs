//! The memory of a lane after failures: which runs it keeps and counts.

use std::sync::Arc;
use std::time::Instant;

use servo_local::TestDatabase;
use servo_model::{RunId, Service};
use servo_store::{Lease, Store, query};
use tokio::sync::{mpsc, oneshot};

use super::manual_lane::{ManualLane, hold, leases};
use super::sizes::finish_saying;
use super::{acme, assert_folded, finish, keep_plan, plan, run_id, store};
use crate::core::Verdict;
use crate::shards::command::Submission;
use crate::shards::lane::{Lane, Message};
use crate::shards::{Applied, Command, CommandResult, SubmitError};

/// At least `in_flight::BATCHING_THRESHOLD`, so that the attempts of one run make the lane busy.
const TASKS: usize = 16;

struct Held {
    _database: TestDatabase,
    store: Store,
    lease: Lease,
    manual: ManualLane,
}

/// A lane with a run whose tasks are all claimed.
async fn claimed(id: RunId, tasks: usize) -> Held {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let lease = hold(&store, id.shard()).await;
    let mut manual = ManualLane::holding(&store, lease.clone()).await;
    let plan = plan(&vec![&[][..]; tasks]);
    keep_plan(&database, &plan).await;
    manual.claimed(&plan, id).await;
    Held {
        _database: database,
        store,
        lease,
        manual,
    }
}

fn in_memory(lane: &Lane, id: RunId) -> bool {
    lane.shards[&id.shard()].runs.contains_key(&id)
}

async fn submit(lane: &mut Lane, commands: Vec<Command>) -> Vec<Applied> {
    let (reply, answer) = oneshot::channel();
    let shard = commands[0].run_id().shard();
    let submission = Submission {
        shard,
        commands,
        reply,
    };
    lane.flush(vec![submission]).await;
    answer.await.unwrap().unwrap()
}

#[tokio::test]
async fn the_runs_of_rejected_submissions_stay_in_memory() {
    let id = run_id(7);
    let mut held = claimed(id, 2).await;
    let lane = &mut held.manual.lane;
    let (submissions, answers): (Vec<_>, Vec<_>) = (0..2)
        .map(|ordinal| {
            let (reply, answer) = oneshot::channel();
            let submission = Submission {
                shard: id.shard(),
                commands: vec![finish(id, ordinal)],
                reply,
            };
            (submission, answer)
        })
        .unzip();
    lane.flush_one_by_one(submissions, Instant::now()).await;
    for answer in answers {
        let rejected = answer.await.unwrap().unwrap_err();
        assert!(matches!(rejected, SubmitError::Unavailable(_)));
    }
    assert!(in_memory(lane, id));
}

#[tokio::test]
async fn a_reloaded_shard_counts_only_the_attempts_of_its_runs() {
    let id = run_id(7);
    let mut held = claimed(id, TASKS).await;
    let lane = &mut held.manual.lane;
    assert!(lane.in_flight.is_busy());
    let set_aside = "UPDATE scheduler.runs SET set_aside = 'by another holder'";
    held.store.loops().execute(query(set_aside)).await.unwrap();
    lane.reload_shard(id.shard()).await;
    assert!(!lane.in_flight.is_busy() && !in_memory(lane, id));
}

#[tokio::test]
async fn runs_of_a_shard_that_is_not_held_are_not_counted() {
    let id = run_id(7);
    let mut held = claimed(id, TASKS).await;
    let lane = &mut held.manual.lane;
    lane.drop_shard(id.shard());
    let missing = std::iter::once((id, None));
    lane.load_missing(missing).await.unwrap();
    assert!(!lane.in_flight.is_busy());
}

#[tokio::test]
async fn a_renewal_with_another_epoch_loads_the_shard_under_the_new_lease() {
    let id = run_id(7);
    let mut held = claimed(id, 2).await;
    let old = held.lease.epoch();
    leases(&held.store, "by hand")
        .release(held.lease)
        .await
        .unwrap();
    let lease = hold(&held.store, id.shard()).await;
    assert_ne!(lease.epoch(), old);
    let (_inbox, mut messages) = mpsc::channel(1);
    let lane = &mut held.manual.lane;
    lane.handle(Message::Renewed(Box::new(lease)), &mut messages)
        .await;
    assert_folded(&submit(lane, vec![finish(id, 0)]).await[0]);
}

#[tokio::test]
async fn a_command_of_another_tenant_does_not_hide_the_run() {
    let id = run_id(7);
    let mut held = claimed(id, 2).await;
    let lane = &mut held.manual.lane;
    lane.evict_runs([id]);
    let Command::Event(foreign) = finish(id, 1) else {
        unreachable!()
    };
    let mut foreign = Arc::into_inner(foreign).unwrap();
    foreign.tenant = "other".parse().unwrap();
    assert_ne!(foreign.tenant, acme());
    let commands = vec![Command::Event(Arc::new(foreign)), finish(id, 0)];
    let applied = submit(lane, commands).await;
    assert_eq!(applied[0].result, CommandResult::RunUnknown);
    assert_folded(&applied[1]);
}

#[tokio::test]
async fn an_ended_run_is_evicted_whatever_the_outcome_of_its_command_is() {
    let id = run_id(7);
    let mut held = claimed(id, 1).await;
    let lane = &mut held.manual.lane;
    assert_folded(&submit(lane, vec![finish(id, 0)]).await[0]);
    assert!(!in_memory(lane, id));
    let large = finish_saying(id, 0, |message| message.skip_reason = "x".repeat(70_000));
    let applied = submit(lane, vec![large]).await;
    assert!(matches!(applied[0].result, CommandResult::TooLarge(_)));
    assert!(!in_memory(lane, id));
    let applied = submit(lane, vec![finish(id, 0)]).await;
    assert_eq!(applied[0].result, CommandResult::Fold(Verdict::Duplicate));
    assert!(!in_memory(lane, id));
}
