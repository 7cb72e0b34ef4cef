//! An instance keeps its fair share of shards despite changes of other instances and failures of
//! Postgres.

#![cfg(test)]

mod common;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{admin, shard, store};
use servo_local::{TestDatabase, wait};
use servo_model::{Epoch, Service, ShardId, Stream};
use servo_store::{Lease, LeaseKeeper, LeaseTtl, Leases, ShardOwner, Store};
use sqlx::Executor;

/// Records its calls, in order.
#[derive(Clone, Default)]
struct Owner {
    calls: Arc<Mutex<Vec<String>>>,
    held: Arc<Mutex<BTreeSet<ShardId>>>,
    unreadable: Arc<Mutex<BTreeSet<ShardId>>>,
}

impl ShardOwner for Owner {
    fn can_hold(&self, shard: ShardId) -> bool {
        !self.unreadable.lock().unwrap().contains(&shard)
    }

    async fn update(&self, held: &[Lease]) {
        let held: BTreeSet<ShardId> = held.iter().map(Lease::shard).collect();
        let mut known = self.held.lock().unwrap();
        if *known != held {
            self.calls
                .lock()
                .unwrap()
                .push(format!("holds {}", held.len()));
            *known = held;
        }
    }

    async fn leave(&self, shards: &[ShardId]) {
        if !shards.is_empty() {
            self.calls
                .lock()
                .unwrap()
                .push(format!("leaves {}", shards.len()));
        }
    }
}

impl Owner {
    fn held(&self) -> Vec<ShardId> {
        self.held.lock().unwrap().iter().copied().collect()
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

/// No lease expires while a test runs.
fn keeper(store: &Store, holder: &str) -> (LeaseKeeper<Owner>, Owner) {
    let ttl = LeaseTtl::new(Duration::from_secs(3600)).unwrap();
    let leases = Leases::new(store.loops(), Stream::Dispatch, holder, "https://here", ttl);
    let owner = Owner::default();
    (LeaseKeeper::new(store, leases, owner.clone()), owner)
}

async fn epochs(keeper: &LeaseKeeper<Owner>) -> Vec<Epoch> {
    keeper.held().await.iter().map(Lease::epoch).collect()
}

#[tokio::test]
async fn instances_share_the_shards_evenly_and_leave_before_they_release() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Dispatcher);
    let ((one, first), (two, second)) = (keeper(&store, "one"), keeper(&store, "two"));
    assert_eq!(one.run_once().await.unwrap().changed, 16);
    assert_eq!(first.calls(), ["holds 16"]);
    let round = two.run_once().await.unwrap();
    assert_eq!(round.changed, 0, "all are held");
    assert!(
        round.again_in.is_some(),
        "the first is about to release some"
    );
    assert_eq!(one.run_once().await.unwrap().changed, 8);
    assert_eq!(first.calls(), ["leaves 8", "holds 8"]);
    assert_eq!(
        first.held(),
        (0..8).map(shard).collect::<Vec<_>>(),
        "adjacent shards stay together"
    );
    let round = two.run_once().await.unwrap();
    assert_eq!((round.changed, round.again_in), (8, None));
    assert_eq!(second.held(), (8..16).map(shard).collect::<Vec<_>>());
    two.leave().await;
    assert_eq!(second.calls(), ["holds 8", "leaves 8", "holds 0"]);
    assert_eq!(
        one.run_once().await.unwrap().changed,
        8,
        "takes over immediately"
    );
    assert_eq!(first.held().len(), 16);
}

#[tokio::test]
async fn failed_renewal_keeps_unexpired_leases() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Dispatcher);
    let (keeper, owner) = keeper(&store, "one");
    keeper.run_once().await.unwrap();
    assert_eq!(epochs(&keeper).await, [Epoch::new(1); 16]);
    let mut admin = admin(&database).await;
    let rename = "ALTER FUNCTION ledger.renew RENAME TO renew_elsewhere";
    admin.execute(rename).await.unwrap();
    keeper.run_once().await.unwrap_err();
    assert_eq!(epochs(&keeper).await, [Epoch::new(1); 16]);
    assert_eq!(owner.held().len(), 16);
    let rename = "ALTER FUNCTION ledger.renew_elsewhere RENAME TO renew";
    admin.execute(rename).await.unwrap();
    keeper.run_once().await.unwrap();
    assert_eq!(epochs(&keeper).await, [Epoch::new(1); 16]);
    assert_eq!(owner.calls(), ["holds 16"]);
}

#[tokio::test]
async fn failed_renewal_drops_expired_leases() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Dispatcher);
    let ttl = LeaseTtl::new(LeaseTtl::MIN).unwrap();
    let leases = Leases::new(store.loops(), Stream::Dispatch, "one", "https://here", ttl);
    let owner = Owner::default();
    let keeper = LeaseKeeper::new(&store, leases, owner.clone());
    keeper.run_once().await.unwrap();
    assert_eq!(owner.held().len(), 16);
    let mut admin = admin(&database).await;
    let rename = "ALTER FUNCTION ledger.renew RENAME TO renew_elsewhere";
    admin.execute(rename).await.unwrap();
    let latest = keeper
        .held()
        .await
        .iter()
        .map(Lease::expires)
        .max()
        .unwrap();
    tokio::time::sleep_until(latest.into()).await;
    keeper.run_once().await.unwrap_err();
    assert_eq!(owner.held(), Vec::<ShardId>::new());
}

#[tokio::test]
async fn all_shards_are_acquired_again_after_a_lost_connection() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Dispatcher);
    let (keeper, _) = keeper(&store, "one");
    keeper.run_once().await.unwrap();
    let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    admin(&database).await.execute(others).await.unwrap();
    wait::until_true("a round to succeed over a new connection", async || {
        keeper.run_once().await.is_ok()
    })
    .await;
    let epochs = epochs(&keeper).await;
    assert!(
        epochs.len() == 16 && epochs.iter().all(|epoch| *epoch > Epoch::new(1)),
        "{epochs:?}"
    );
}

#[tokio::test]
async fn unprocessable_shard_is_released_to_others() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Dispatcher);
    let (keeper, owner) = keeper(&store, "one");
    keeper.run_once().await.unwrap();
    owner.unreadable.lock().unwrap().insert(shard(3));
    assert_eq!(keeper.run_once().await.unwrap().changed, 1);
    assert!(!owner.held().contains(&shard(3)));
    assert_eq!(
        keeper.run_once().await.unwrap().changed,
        0,
        "it is not acquired again"
    );
    owner.unreadable.lock().unwrap().clear();
    assert_eq!(keeper.run_once().await.unwrap().changed, 1);
}
