//! Who waits for company in a crowd, and who does not.

use std::time::Duration;

use servo_local::TestDatabase;
use servo_model::{RunId, Service};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::super::Applied;
use super::manual_lane::{ManualLane, hold};
use super::{finish, folded, keep_plan, plan, store};
use crate::shards::SubmitError;
use crate::shards::command::Submission;
use crate::shards::lane::Message;

const LARGE: RunId = RunId::from_bytes([9; 16]);
const SMALL: RunId = RunId::from_bytes([3; 16]);
/// So many attempts are one.
const BATCHING_THRESHOLD: usize = 16;
/// Long enough for a lane that waits for nobody to have begun its flush.
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

/// A lane that holds the shards of two runs, all of whose tasks are claimed.
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

/// Whether a lane that is asked to finish a task of a run still waits when a task of the large one comes.
async fn waits(manual: &mut ManualLane, id: RunId) -> bool {
    let (inbox, mut messages) = mpsc::unbounded_channel();
    let ((first, of_first), (second, of_second)) = (finishing(id, 0), finishing(LARGE, 1));
    tokio::spawn(async move {
        tokio::time::sleep(LATER).await;
        // With the last handle nobody else can come, and whoever waits goes on.
        let _ = inbox.send(second);
    });
    // However slow the machine is, it would be in time.
    manual.lane.flushed = Some(Instant::now() + Duration::from_secs(60));
    manual.lane.handle(first, &mut messages).await;
    let left = messages.recv().await;
    let waited = left.is_none();
    if let Some(second) = left {
        manual.lane.handle(second, &mut messages).await;
    }
    for answer in [of_first, of_second] {
        answer.await.unwrap().unwrap().iter().for_each(folded);
    }
    waited
}

#[tokio::test]
async fn in_a_crowd_a_flush_waits_for_company() {
    let (_database, mut manual) = lane(BATCHING_THRESHOLD - 2, 2).await;
    assert!(waits(&mut manual, LARGE).await);
}

#[tokio::test]
async fn a_run_with_nothing_else_under_way_does_not_wait_in_a_crowd() {
    let (_database, mut manual) = lane(BATCHING_THRESHOLD, 1).await;
    assert!(!waits(&mut manual, SMALL).await);
}

#[tokio::test]
async fn nobody_waits_without_a_crowd() {
    let (_database, mut manual) = lane(BATCHING_THRESHOLD - 3, 2).await;
    assert!(!waits(&mut manual, LARGE).await);
}
