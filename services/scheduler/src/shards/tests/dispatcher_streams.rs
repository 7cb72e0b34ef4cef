//! A dispatcher that does not read its stream.

use std::collections::BTreeSet;

use servo_local::TestDatabase;
use servo_model::{RunId, Stream};
use tokio::sync::mpsc;

use super::{
    DispatcherStream, ToDispatcher, apply, assert_folded, claim, dispatcher_stream, instance,
    new_run, plan,
};

/// Runs of one shard.
fn nth_run(n: u8) -> RunId {
    let mut id = [7; 16];
    id[15] = n;
    RunId::from_bytes(id)
}

#[tokio::test]
async fn dispatcher_that_does_not_read_is_disconnected_and_misses_nothing() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    // The snapshots of all shards fit, and a few updates.
    let (responses, unread) = mpsc::channel(Stream::Execution.shards().count() + 4);
    let stuck = DispatcherStream {
        id: 2,
        responses,
        ..dispatcher_stream(1).0
    };
    one.shards.open_stream(&stuck).await.unwrap();
    let plan = plan(&[&[]]);
    let mut begun = BTreeSet::new();
    for n in (0..100).take_while(|_| !stuck.stop.is_cancelled()) {
        assert_folded(&apply(&one, new_run(&one, &plan, nth_run(n), "f")).await);
        begun.insert(nth_run(n).to_string());
    }
    assert!(stuck.stop.is_cancelled(), "{} runs began", begun.len());
    assert_eq!(unread.len(), unread.max_capacity(), "its queue is full");

    // The handler of a stopped stream closes it, and the dispatcher opens another one.
    one.shards.close_stream(stuck.id).await;
    let (next, mut messages) = dispatcher_stream(1);
    one.shards.open_stream(&next).await.unwrap();
    // The answer follows the opening of the stream, so the snapshots were sent.
    assert_folded(&apply(&one, claim(nth_run(0), 0, 1, 1)).await);
    let mut offered = BTreeSet::new();
    while let Ok(message) = messages.try_recv() {
        if let Some(ToDispatcher::Snapshot(part)) = message.message {
            offered.extend(part.ready.into_iter().map(|run| run.run_id));
        }
    }
    assert_eq!(offered, begun);
}
