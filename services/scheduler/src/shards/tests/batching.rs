//! Which submissions a busy lane batches.

use std::time::Duration;

use servo_local::TestDatabase;
use servo_model::{RunId, Service};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::super::Applied;
use super::manual_lane::{ManualLane, hold};
use super::{assert_folded, finish, keep_plan, plan, store};
use crate::shards::SubmitError;
use crate::shards::command::Submission;
use crate::shards::lane::Message;

const LARGE: RunId = RunId::from_bytes([9; 16]);
const SMALL: RunId = RunId::from_bytes([3; 16]);
/// Must match `in_flight::BATCHING_THRESHOLD`.
const BATCHING_THRESHOLD: usize = 16;
/// Long enough for a lane that does not wait to begin its flush.
const LATER: Duration = Duration::from_millis(20);

type Answer = oneshot::Receiver<Result<Vec<Applied>, SubmitError>>;

fn finishing(id: RunId, ordinal: u32) -> (Message, Answer) {
    let (reply, answer) = oneshot::channel();
    (
        Message::Submission(Submission {
            shard: id.shard(),
            commands: vec![finish(id, ordinal)],
            reply,
        }),
        answer,
    )
}

/// A lane with two runs, all of whose tasks are claimed.
async fn lane(large: usize, small: usize) -> (TestDatabase, ManualLane) {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let mut manual = ManualLane::holding(&store, hold(&store, LARGE.shard()).await).await;
    manual
        .lane
        .try_load_shard(hold(&store, SMALL.shard()).await)
        .await
        .unwrap();
    for (id, tasks) in [(LARGE, large), (SMALL, small)] {
        let plan = plan(&vec![&[][..]; tasks]);
        keep_plan(&database, &plan).await;
        manual.claimed(&plan, id).await;
    }
    (database, manual)
}

/// Whether a lane that finishes a task of a run waits for a later submission of the large run.
async fn waits(manual: &mut ManualLane, id: RunId) -> bool {
    let (inbox, mut messages) = mpsc::channel(10_000);
    let ((first, of_first), (second, of_second)) = (finishing(id, 0), finishing(LARGE, 1));
    tokio::spawn(async move {
        tokio::time::sleep(LATER).await;
        // Dropping the last handle ends the wait.
        let _ = inbox.send(second).await;
    });
    // In the future, so that a slow machine cannot end the wait.
    manual.lane.last_flush = Some(Instant::now() + Duration::from_secs(60));
    manual.lane.handle(first, &mut messages).await;
    let left = messages.recv().await;
    let waited = left.is_none();
    if let Some(second) = left {
        manual.lane.handle(second, &mut messages).await;
    }
    for answer in [of_first, of_second] {
        answer
            .await
            .unwrap()
            .unwrap()
            .iter()
            .for_each(assert_folded);
    }
    waited
}

#[tokio::test]
async fn a_busy_lane_batches_submissions() {
    let (_database, mut manual) = lane(BATCHING_THRESHOLD - 2, 2).await;
    assert!(waits(&mut manual, LARGE).await);
}

#[tokio::test]
async fn a_latency_bound_run_skips_batching() {
    let (_database, mut manual) = lane(BATCHING_THRESHOLD, 1).await;
    assert!(!waits(&mut manual, SMALL).await);
}

#[tokio::test]
async fn an_idle_lane_does_not_batch() {
    let (_database, mut manual) = lane(BATCHING_THRESHOLD - 3, 2).await;
    assert!(!waits(&mut manual, LARGE).await);
}
