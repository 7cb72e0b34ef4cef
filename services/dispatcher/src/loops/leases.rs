//! Holding a fair part of the admission shards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_mesh::{Doorbell, SHARES_MOVE_WITHIN};
use servo_model::Stream;
use servo_store::{Generation, Lease, Leases, Store, StoreError};
use tokio::sync::Mutex;
use tracing::info;

use super::engine::{Engine, Message};
use crate::store;

/// Renews what is held, takes what is free and gives back what others should have.
pub(crate) struct LeaseLoop {
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
    /// What was acquired over a connection that is gone is worth nothing.
    generation: Generation,
    /// How many there are of us, and since when.
    instances: (i64, Instant),
}

impl LeaseLoop {
    pub(crate) fn new(
        store: &Store,
        leases: Leases,
        engine: Engine,
        instance: &str,
        ttl: Duration,
    ) -> LeaseLoop {
        let instances = (0, Instant::now());
        let held = Held {
            leases: Vec::new(),
            generation: store.generation(),
            instances,
        };
        LeaseLoop {
            store: store.clone(),
            leases,
            engine,
            instance: instance.into(),
            ttl,
            held: Mutex::new(held),
            bell: Doorbell::new(),
        }
    }

    /// Rings while shards change hands.
    pub(crate) fn bell(&self) -> &Doorbell {
        &self.bell
    }

    pub(crate) async fn run_once(&self) -> Result<(), StoreError> {
        let mut held = self.held.lock().await;
        let renewed = self.renew(&mut held).await;
        if let Err(error) = renewed {
            // Nobody else can have taken them before they run out by our own clock.
            let now = Instant::now();
            held.leases.retain(|lease| now < lease.expires());
            self.tell(&held);
            return Err(error);
        }
        self.tell(&held);
        Ok(())
    }

    /// The leases as they stand, for folding.
    pub(crate) async fn held(&self) -> Vec<Lease> {
        self.held.lock().await.leases.clone()
    }

    /// Gives everything back, so that others need not wait for it to run out.
    pub(crate) async fn release_all(&self) -> Result<(), StoreError> {
        let mut held = self.held.lock().await;
        let leases = std::mem::take(&mut held.leases);
        self.engine
            .leave(leases.iter().map(Lease::shard).collect())
            .await;
        self.tell(&held);
        for lease in leases {
            self.leases.release(lease).await?;
        }
        store::forget_instance(self.store.loops(), &self.instance).await
    }

    /// What was acquired over a connection that is gone is given back, to be taken again at once under a new epoch, with
    /// everything told anew. What cannot be released now runs out by itself.
    async fn start_anew(&self, held: &mut Held) {
        let generation = self.store.generation();
        if std::mem::replace(&mut held.generation, generation) == generation {
            return;
        }
        for lease in std::mem::take(&mut held.leases) {
            let _ = self.leases.release(lease).await;
        }
    }

    async fn renew(&self, held: &mut Held) -> Result<(), StoreError> {
        self.start_anew(held).await;
        let instances = store::note_instance(self.store.loops(), &self.instance, self.ttl).await?;
        let renewed = self.leases.renew(held.leases.clone()).await?;
        held.leases = renewed.held;
        let share = fair_share(instances);
        let given = held.leases.split_off(share.min(held.leases.len()));
        if !given.is_empty() {
            let shards: Vec<i16> = given.iter().map(Lease::shard).collect();
            info!(?shards, instances, "giving admission shards to a newcomer");
            self.engine.leave(shards).await;
            self.tell(held);
            for lease in given {
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
        // The others are about to give back what is above their share.
        if held.leases.len() < share && held.instances.1.elapsed() < self.ttl {
            self.bell.ring_in(SHARES_MOVE_WITHIN);
        }
        Ok(())
    }

    fn tell(&self, held: &Held) {
        let epoch = |lease: &Lease| {
            (
                lease.shard(),
                u64::try_from(lease.epoch()).unwrap_or_default(),
            )
        };
        let leases: BTreeMap<i16, u64> = held.leases.iter().map(epoch).collect();
        if *self.engine.held().borrow() != leases {
            info!(shards = ?leases.keys().collect::<Vec<_>>(), "admission shards held");
            self.engine.tell(Message::Hold(leases));
        }
    }
}

/// How many shards an instance holds at most, so that all of them are held by somebody.
fn fair_share(instances: i64) -> usize {
    let shards = Stream::Dispatch.shards().unsigned_abs() as usize;
    shards.div_ceil(usize::try_from(instances).unwrap_or(1).max(1))
}

#[cfg(test)]
mod tests {
    use servo_store::LeaseTtl;
    use sqlx::{Connection, Executor, PgConnection};

    use super::*;
    use crate::loops::engine::tests::World;

    /// No lease runs out while a test lasts.
    fn lease_loop(world: &World) -> LeaseLoop {
        let ttl = LeaseTtl::new(Duration::from_secs(3600)).unwrap();
        let leases = Leases::new(&world.store, Stream::Dispatch, "one", "https://one", ttl);
        LeaseLoop::new(&world.store, leases, world.engine.clone(), "one", ttl.get())
    }

    async fn epochs(leases: &LeaseLoop) -> Vec<i64> {
        leases.held().await.iter().map(Lease::epoch).collect()
    }

    #[tokio::test]
    async fn a_failed_renewal_gives_nothing_away() {
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
            "they are ours until they run out"
        );
        admin
            .execute("ALTER FUNCTION ledger.renew_away RENAME TO renew")
            .await
            .unwrap();
        leases.run_once().await.unwrap();
        assert_eq!(epochs(&leases).await, [1; 16]);
    }

    #[tokio::test]
    async fn after_a_lost_connection_all_is_taken_again_at_once() {
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
    fn shares_cover_all_shards_and_are_even() {
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
