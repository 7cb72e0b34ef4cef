//! Leases: which role may acquire what, and the guarantees for a holder.

#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

mod common;

use common::{admin, at, event, leases, shard, shards, store};
use servo_local::TestDatabase;
use servo_model::{Epoch, EventType, Position, Service, ShardId, Stream};
use servo_store::{Lease, LeaseTtl, Leases, StoreError, query};
use sqlx::{Connection, PgConnection};

/// Expires a lease by setting its end; database time is never faked.
async fn expire(admin: &mut PgConnection, shard: ShardId) {
    sqlx::query(
        "UPDATE ledger.shards SET lease_until = clock_timestamp() WHERE stream = 1 AND shard = $1",
    )
    .bind(shard)
    .execute(admin)
    .await
    .unwrap();
}

/// The numbers of the shard and of the epoch.
fn numbers(lease: &Lease) -> (u32, u64) {
    (lease.shard().into(), lease.epoch().get())
}

fn shard_number(lease: &Lease) -> u32 {
    lease.shard().into()
}

#[tokio::test]
async fn shard_has_one_holder_and_epochs_only_increase() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let mut admin = admin(&database).await;
    let (anna, ben) = (leases(&store, "anna"), leases(&store, "ben"));
    let mut held = anna.acquire(&shards([0, 1, 2, 3]), 3).await.unwrap();
    held.sort_by_key(|lease| lease.shard());
    assert_eq!(
        held.iter().map(numbers).collect::<Vec<_>>(),
        [(0, 1), (1, 1), (2, 1)]
    );
    let acquired = ben.acquire(&shards([0, 1, 2, 3]), 4).await.unwrap();
    assert_eq!(acquired.iter().map(shard_number).collect::<Vec<_>>(), [3]);
    expire(&mut admin, shard(1)).await;
    let acquired = ben.acquire(&shards([0, 1, 2]), 4).await.unwrap();
    assert_eq!(acquired.iter().map(numbers).collect::<Vec<_>>(), [(1, 2)]);
    let renewed = anna.renew(held).await.unwrap();
    assert_eq!(
        renewed.held.iter().map(shard_number).collect::<Vec<_>>(),
        [0, 2]
    );
    assert_eq!(
        renewed.lost.iter().map(shard_number).collect::<Vec<_>>(),
        [1]
    );
    for lease in renewed.held {
        anna.release(lease).await.unwrap();
    }
    let acquired = ben.acquire(&shards([0, 2]), 4).await.unwrap();
    assert_eq!(
        acquired.iter().map(numbers).collect::<Vec<_>>(),
        [(0, 2), (2, 2)]
    );
    let holders = store.loops().holders(Stream::Execution).await.unwrap();
    assert_eq!(
        holders
            .iter()
            .map(|h| (u32::from(h.shard), h.holder.as_str()))
            .collect::<Vec<_>>(),
        [(0, "ben"), (1, "ben"), (2, "ben"), (3, "ben")]
    );
}

/// Its holder must acquire it again, even if no other instance wanted it.
#[tokio::test]
async fn expired_lease_is_lost_even_if_no_one_acquired_it() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let anna = leases(&store, "anna");
    let lease = anna.acquire(&[shard(7)], 1).await.unwrap().remove(0);
    expire(&mut admin(&database).await, shard(7)).await;
    assert!(matches!(
        store.loops().fence(&lease, at(0), at(0)).await.unwrap_err(),
        StoreError::LeaseLost(_)
    ));
    assert_eq!(anna.renew(vec![lease]).await.unwrap().lost.len(), 1);
    assert_eq!(
        anna.acquire(&[shard(7)], 1).await.unwrap()[0].epoch(),
        Epoch::new(2)
    );
}

#[tokio::test]
async fn releasing_a_lost_lease_does_not_affect_its_new_holder() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let (anna, ben) = (leases(&store, "anna"), leases(&store, "ben"));
    let lost = anna.acquire(&[shard(7)], 1).await.unwrap().remove(0);
    expire(&mut admin(&database).await, shard(7)).await;
    let current = ben.acquire(&[shard(7)], 1).await.unwrap().remove(0);
    anna.release(lost).await.unwrap();
    store
        .loops()
        .fence(&current, at(0), at(0))
        .await
        .unwrap()
        .commit()
        .await
        .unwrap();
}

#[tokio::test]
async fn only_the_streams_owner_may_lease_it() {
    let database = TestDatabase::create().await.unwrap();
    for service in [Service::Planner, Service::Dispatcher, Service::Callback] {
        let store = store(&database, service);
        let refused = leases(&store, "anna")
            .acquire(&[shard(0)], 1)
            .await
            .unwrap_err();
        assert!(
            matches!(refused, StoreError::Refused(_)),
            "{service}: {refused}"
        );
    }
    let store = store(&database, Service::Dispatcher);
    let ttl = LeaseTtl::new(LeaseTtl::MIN).unwrap();
    let own = Leases::new(
        store.loops(),
        Stream::Dispatch,
        "anna",
        "127.0.0.1:7413",
        ttl,
    );
    assert_eq!(own.acquire(&shards([0, 15]), 2).await.unwrap().len(), 2);
}

#[test]
fn lease_ttl_exceeds_a_stopped_holders_transaction() {
    let refused = LeaseTtl::new(std::time::Duration::from_millis(2_999)).unwrap_err();
    assert!(refused.to_string().contains("lease_ttl"), "{refused}");
}

/// A row locked by another transaction delays neither acquisition nor renewal of other shards.
#[tokio::test]
async fn locked_row_does_not_delay_other_shards() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let (anna, ben) = (leases(&store, "anna"), leases(&store, "ben"));
    let held = anna.acquire(&shards([0, 1]), 2).await.unwrap();
    let mut admin = admin(&database).await;
    let mut locking = admin.begin().await.unwrap();
    sqlx::query("SELECT FROM ledger.shards WHERE stream = 1 AND shard IN (1, 2) FOR UPDATE")
        .execute(&mut *locking)
        .await
        .unwrap();
    let acquired = ben.acquire(&shards([2, 3, 4]), 3).await.unwrap();
    assert_eq!(
        acquired.iter().map(shard_number).collect::<Vec<_>>(),
        [3, 4]
    );
    let renewed = anna.renew(held).await.unwrap();
    assert_eq!(
        renewed.held.len(),
        2,
        "a lease that cannot be extended now is not lost yet"
    );
    locking.rollback().await.unwrap();
    assert_eq!(ben.acquire(&shards([2, 3, 4]), 3).await.unwrap().len(), 1);
}

/// Appenders lock a busy shard's row almost always; an acquisition waits in the lock queue and
/// succeeds.
#[tokio::test]
async fn busy_shard_can_be_acquired() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let busy = tokio::spawn({
        let store = store.clone();
        async move {
            for n in 0.. {
                let batch = (0..50).map(|k| {
                    event(
                        EventType::TaskFinished,
                        shard(5),
                        "acme",
                        &format!("{n}/{k}"),
                    )
                });
                store.ledger().append(batch.collect()).await.unwrap();
            }
        }
    });
    let anna = leases(&store, "anna");
    let mut lease = None;
    while lease.is_none() {
        lease = anna
            .acquire(&shards([4, 5]), 2)
            .await
            .unwrap()
            .into_iter()
            .find(|lease| lease.shard() == shard(5));
    }
    busy.abort();
}

#[tokio::test]
async fn fence_moves_the_watermark_once_and_never_beyond_the_head() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let lease = leases(&store, "anna")
        .acquire(&[shard(9)], 1)
        .await
        .unwrap()
        .remove(0);
    let append = (0..3)
        .map(|n| event(EventType::TaskFinished, shard(9), "acme", &format!("{n}")))
        .collect();
    store.ledger().append(append).await.unwrap();
    let fenced = store.loops().fence(&lease, at(0), at(2)).await.unwrap();
    assert_eq!(fenced.head(), at(3));
    fenced.commit().await.unwrap();
    let again = store.loops().fence(&lease, at(0), at(2)).await.unwrap_err();
    assert!(matches!(again, StoreError::LeaseLost(_)), "{again}");
    assert!(
        store.loops().fence(&lease, at(2), at(4)).await.is_err(),
        "there is no position 4"
    );
    assert!(
        store.loops().fence(&lease, at(2), at(1)).await.is_err(),
        "a watermark never decreases"
    );
    store
        .loops()
        .fence(&lease, at(2), at(3))
        .await
        .unwrap()
        .commit()
        .await
        .unwrap();
}

/// The fast path: the owner appends, folds and moves the watermark in one transaction.
#[tokio::test]
async fn owner_appends_and_folds_in_one_transaction() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let lease = leases(&store, "anna")
        .acquire(&[shard(9)], 1)
        .await
        .unwrap()
        .remove(0);
    let mut fenced = store.loops().fence(&lease, at(0), at(0)).await.unwrap();
    let answers = fenced
        .append(&[event(EventType::TaskFinished, shard(9), "acme", "k")])
        .await
        .unwrap();
    fenced.advance(answers[0].position).await.unwrap();
    fenced.commit().await.unwrap();
    let marks: Vec<(Position, Position)> = store
        .loops()
        .all(query(
            "SELECT head, watermark FROM ledger.shards WHERE stream = 1 AND shard = 9",
        ))
        .await
        .unwrap();
    assert_eq!(marks, [(at(1), at(1))]);
}
