//! Acquiring, renewing and rebalancing this instance's share of the admission shards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_mesh::{Doorbell, REBALANCE_DELAY};
use servo_model::Stream;
use servo_store::{Generation, Lease, Leases, Store, StoreError};
use tokio::sync::Mutex;
use tracing::info;

use crate::engine::{Engine, Message};
use crate::store;

/// Renews the leases held here, acquires free ones and releases those above the fair share.
pub(crate) struct LeaseKeeper {
    store: Store,
    leases: Leases,
    engine: Engine,
    instance: Arc<str>,
    ttl: Duration,
    held: Mutex<Held>,
    bell: Doorbell,
}

struct Held {
    leases: Vec<Lease>,
    /// The connection generation of `leases`. Leases that were acquired over an earlier connection
    /// are not trusted.
    generation: Generation,
    /// Number of living instances, and since when.
    instances: (i64, Instant),
}

impl LeaseKeeper {
    pub(crate) fn new(
        store: &Store,
        leases: Leases,
        engine: Engine,
        instance: &str,
        ttl: Duration,
    ) -> LeaseKeeper {
        let instances = (0, Instant::now());
        let held = Held {
            leases: Vec::new(),
            generation: store.generation(),
            instances,
        };
        LeaseKeeper {
            store: store.clone(),
            leases,
            engine,
            instance: instance.into(),
            ttl,
            held: Mutex::new(held),
            bell: Doorbell::new(),
        }
    }

    /// Rings while shards move between instances.
    pub(crate) fn bell(&self) -> &Doorbell {
        &self.bell
    }

    pub(crate) async fn run_once(&self) -> Result<(), StoreError> {
        let mut held = self.held.lock().await;
        let renewed = self.renew(&mut held).await;
        if let Err(error) = renewed {
            // No other instance can have acquired a lease that has not expired by our own clock.
            let now = Instant::now();
            held.leases.retain(|lease| now < lease.expires());
            self.publish(&held);
            return Err(error);
        }
        self.publish(&held);
        Ok(())
    }

    /// Returns the current leases, for moving watermarks.
    pub(crate) async fn held(&self) -> Vec<Lease> {
        self.held.lock().await.leases.clone()
    }

    /// Releases all leases, so that other instances need not wait until they expire.
    pub(crate) async fn release_all(&self) -> Result<(), StoreError> {
        let mut held = self.held.lock().await;
        let leases = std::mem::take(&mut held.leases);
        self.engine
            .hand_over(leases.iter().map(Lease::shard).collect())
            .await;
        self.publish(&held);
        for lease in leases {
            self.leases.release(lease).await?;
        }
        store::forget_instance(self.store.loops(), &self.instance).await
    }

    /// Releases leases that were acquired over an earlier connection. They are acquired again at
    /// once under a new epoch, and the schedulers send everything again. A lease that cannot be
    /// released expires.
    async fn drop_stale_leases(&self, held: &mut Held) {
        let generation = self.store.generation();
        if std::mem::replace(&mut held.generation, generation) == generation {
            return;
        }
        for lease in std::mem::take(&mut held.leases) {
            let _ = self.leases.release(lease).await;
        }
    }

    async fn renew(&self, held: &mut Held) -> Result<(), StoreError> {
        self.drop_stale_leases(held).await;
        let instances = store::note_instance(self.store.loops(), &self.instance, self.ttl).await?;
        let renewed = self.leases.renew(held.leases.clone()).await?;
        held.leases = renewed.held;
        let share = fair_share(instances);
        let surplus = held.leases.split_off(share.min(held.leases.len()));
        if !surplus.is_empty() {
            let shards: Vec<i16> = surplus.iter().map(Lease::shard).collect();
            info!(
                ?shards,
                instances, "releasing admission shards above the fair share"
            );
            self.engine.hand_over(shards).await;
            self.publish(held);
            for lease in surplus {
                self.leases.release(lease).await?;
            }
        }
        let wanted: Vec<i16> = (0..Stream::Dispatch.shards()).collect();
        held.leases.extend(
            self.leases
                .acquire(&wanted, share - held.leases.len())
                .await?,
        );
        if held.instances.0 != instances {
            held.instances = (instances, Instant::now());
        }
        // The other instances are about to release what is above their share.
        if held.leases.len() < share && held.instances.1.elapsed() < self.ttl {
            self.bell.ring_in(REBALANCE_DELAY);
        }
        Ok(())
    }

    fn publish(&self, held: &Held) {
        let epoch = |lease: &Lease| {
            (
                lease.shard(),
                u64::try_from(lease.epoch()).unwrap_or_default(),
            )
        };
        let leases: BTreeMap<i16, u64> = held.leases.iter().map(epoch).collect();
        if *self.engine.held().borrow() != leases {
            info!(shards = ?leases.keys().collect::<Vec<_>>(), "admission shards changed");
            self.engine.send(Message::HeldShards(leases));
        }
    }
}

/// Returns how many shards an instance may hold. Rounded up, so that all shards have a holder.
fn fair_share(instances: i64) -> usize {
    let shards = Stream::Dispatch.shards().unsigned_abs() as usize;
    shards.div_ceil(usize::try_from(instances).unwrap_or(1).max(1))
}

#[cfg(test)]
mod tests {
    use servo_store::LeaseTtl;
    use sqlx::{Connection, Executor, PgConnection};

    use super::*;
    use crate::engine::tests::World;

    /// The TTL is longer than any test.
    fn lease_loop(world: &World) -> LeaseKeeper {
        let ttl = LeaseTtl::new(Duration::from_secs(3600)).unwrap();
        let leases = Leases::new(&world.store, Stream::Dispatch, "one", "https://one", ttl);
        LeaseKeeper::new(&world.store, leases, world.engine.clone(), "one", ttl.get())
    }

    async fn epochs(leases: &LeaseKeeper) -> Vec<i64> {
        leases.held().await.iter().map(Lease::epoch).collect()
    }

    #[tokio::test]
    async fn failed_renewal_keeps_unexpired_leases() {
        let world = World::start().await;
        let leases = lease_loop(&world);
        leases.run_once().await.unwrap();
        assert_eq!(epochs(&leases).await, [1; 16]);
        let mut admin = PgConnection::connect(&world.database.admin_url())
            .await
            .unwrap();
        admin
            .execute("ALTER FUNCTION ledger.renew RENAME TO renew_away")
            .await
            .unwrap();
        leases.run_once().await.unwrap_err();
        assert_eq!(
            epochs(&leases).await,
            [1; 16],
            "they are held until they expire"
        );
        admin
            .execute("ALTER FUNCTION ledger.renew_away RENAME TO renew")
            .await
            .unwrap();
        leases.run_once().await.unwrap();
        assert_eq!(epochs(&leases).await, [1; 16]);
    }

    #[tokio::test]
    async fn lost_connection_reacquires_all_shards_under_new_epochs() {
        let world = World::start().await;
        let leases = lease_loop(&world);
        leases.run_once().await.unwrap();
        let mut admin = PgConnection::connect(&world.database.admin_url())
            .await
            .unwrap();
        let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        admin.execute(others).await.unwrap();
        while leases.run_once().await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let epochs = epochs(&leases).await;
        assert!(
            epochs.len() == 16 && epochs.iter().all(|epoch| *epoch > 1),
            "{epochs:?}"
        );
    }

    #[test]
    fn fair_shares_cover_all_shards() {
        let check =
            |instances, share| assert_eq!(fair_share(instances), share, "{instances} instances");
        check(0, 16);
        check(1, 16);
        check(2, 8);
        check(3, 6);
        check(16, 1);
        check(40, 1);
    }
}
