use std::collections::BTreeMap;

use servo_mesh::Reason;
use servo_model::Service;
use servo_proto::mesh::v1::{TenantLimits, WatchLimitsRequest, WatchLimitsResponse};
use servo_proto::v1::QuotaLimits;
use tonic::Streaming;

use crate::pools::{create, delete};
use crate::support::{PLATFORM, TENANT, World, by_user, refused, tasks};

/// A watcher of limits and the limits it has received.
struct Watcher {
    stream: Streaming<WatchLimitsResponse>,
    received: BTreeMap<String, TenantLimits>,
    token: String,
}

impl Watcher {
    async fn open(world: &World, instance: usize, resume_token: &str) -> Watcher {
        let request = WatchLimitsRequest {
            resume_token: resume_token.into(),
        };
        let mut client = world.internal_client(Service::Dispatcher, instance);
        let stream = client.watch_limits(request).await.unwrap().into_inner();
        let mut watcher = Watcher {
            stream,
            received: BTreeMap::new(),
            token: String::new(),
        };
        while !watcher.receive().await {}
        watcher
    }

    /// Receives one message. Returns whether the watcher is caught up.
    async fn receive(&mut self) -> bool {
        let message = self.stream.message().await.unwrap().unwrap();
        self.received.extend(
            message
                .tenants
                .into_iter()
                .map(|tenant| (tenant.tenant.clone(), tenant)),
        );
        self.token = message.resume_token;
        message.caught_up
    }

    async fn until(&mut self, holds: impl Fn(&BTreeMap<String, TenantLimits>) -> bool) {
        while !holds(&self.received) {
            self.receive().await;
        }
    }

    fn names(&self) -> Vec<&str> {
        self.received.keys().map(String::as_str).collect()
    }
}

fn cap(received: &BTreeMap<String, TenantLimits>, tenant: &str) -> Option<u32> {
    received[tenant].limits.unwrap().max_concurrent_tasks
}

#[tokio::test]
async fn a_new_platform_has_no_caps() {
    let world = World::start().await;
    let watcher = Watcher::open(&world, 0, "").await;
    assert_eq!(
        (watcher.names(), cap(&watcher.received, PLATFORM)),
        (vec![PLATFORM], None)
    );
    assert_eq!(
        watcher.received[PLATFORM].limits.unwrap().weight_millis,
        Some(1_000)
    );
}

#[tokio::test]
async fn a_pause_by_a_zero_limit_reaches_every_watcher_of_every_instance() {
    let world = World::start_with(2, &[]).await;
    let mut here = Watcher::open(&world, 0, "").await;
    let mut same_instance = Watcher::open(&world, 0, "").await;
    let mut elsewhere = Watcher::open(&world, 1, "").await;
    for limits in [tasks(0), tasks(5), QuotaLimits::default()] {
        let expected = limits.max_concurrent_tasks;
        world.set_limits(TENANT, limits).await;
        for watcher in [&mut here, &mut same_instance, &mut elsewhere] {
            watcher
                .until(|received| {
                    received.contains_key(TENANT) && cap(received, TENANT) == expected
                })
                .await;
        }
    }
    for watcher in [&here, &elsewhere] {
        assert_eq!(cap(&watcher.received, PLATFORM), None);
    }
}

#[tokio::test]
async fn a_new_default_changes_all_tenants_without_a_setting() {
    let world = World::start().await;
    world
        .set_limits(
            "follower",
            QuotaLimits {
                weight_millis: Some(3_000),
                ..Default::default()
            },
        )
        .await;
    world.set_limits("fixed", tasks(7)).await;
    let mut watcher = Watcher::open(&world, 0, "").await;
    world.set_limits(PLATFORM, tasks(50)).await;
    watcher
        .until(|received| cap(received, PLATFORM) == Some(50))
        .await;
    watcher
        .until(|received| cap(received, "follower") == Some(50))
        .await;
    assert_eq!(cap(&watcher.received, "fixed"), Some(7));
    assert_eq!(
        watcher.received["follower"].limits.unwrap().weight_millis,
        Some(3_000)
    );
}

#[tokio::test]
async fn pools_are_streamed_when_created_and_deleted() {
    let world = World::start().await;
    let mut client = world.client();
    let mut watcher = Watcher::open(&world, 0, "").await;
    let slots = |received: &BTreeMap<String, TenantLimits>| -> Option<Vec<(String, u32)>> {
        let pools = &received.get(TENANT)?.pools;
        Some(
            pools
                .iter()
                .map(|pool| (pool.pool.clone(), pool.slots))
                .collect(),
        )
    };
    client.create_pool(by_user(create("db", 3))).await.unwrap();
    client.create_pool(by_user(create("api", 0))).await.unwrap();
    watcher
        .until(|received| slots(received) == Some(vec![("api".into(), 0), ("db".into(), 3)]))
        .await;
    client.delete_pool(by_user(delete("db", 0))).await.unwrap();
    client.delete_pool(by_user(delete("api", 0))).await.unwrap();
    watcher
        .until(|received| slots(received) == Some(Vec::new()))
        .await;
}

#[tokio::test]
async fn a_token_resumes_at_any_instance() {
    let world = World::start_with(2, &[]).await;
    for (tenant, max) in [("a", 1), ("b", 2), ("c", 3)] {
        world.set_limits(tenant, tasks(max)).await;
    }
    for instance in [0, 1] {
        let mut before = Watcher::open(&world, instance, "").await;
        before.until(|received| received.len() == 4).await;
        let resumed = Watcher::open(&world, instance, &before.token).await;
        assert_eq!(resumed.names(), Vec::<&str>::new());
        let max = 10 + u32::try_from(instance).unwrap();
        world.set_limits("b", tasks(max)).await;
        for resume_at in [0, 1] {
            let mut resumed = Watcher::open(&world, resume_at, &before.token).await;
            resumed
                .until(|received| received.contains_key("b") && cap(received, "b") == Some(max))
                .await;
            // Another instance may have polled less often and then sends more than necessary.
            assert!(
                resume_at != instance || resumed.names() == ["b"],
                "{:?}",
                resumed.names()
            );
        }
    }
    assert_eq!(
        Watcher::open(&world, 0, "nonsense").await.names(),
        ["-", "a", "b", "c"]
    );
}

#[tokio::test]
async fn only_services_that_enforce_limits_may_watch() {
    let world = World::start().await;
    let request = WatchLimitsRequest {
        resume_token: String::new(),
    };
    let answer = world
        .internal_client(Service::Callback, 0)
        .watch_limits(request)
        .await;
    refused(answer, Reason::CallerNotAllowed, "callback");
}

#[tokio::test]
async fn a_budget_that_cannot_be_summed_delays_no_limit() {
    let world = World::start().await;
    let mut watcher = Watcher::open(&world, 0, "").await;
    world
        .client()
        .create_budget(by_user(crate::money::create("all", 5)))
        .await
        .unwrap();
    watcher
        .until(|received| {
            received
                .get(TENANT)
                .is_some_and(|received| received.budgets.len() == 1)
        })
        .await;
    let rename_column = "ALTER TABLE quota.usage RENAME COLUMN compute_pico TO away";
    sqlx::raw_sql(rename_column)
        .execute(&mut world.admin().await)
        .await
        .unwrap();
    world.set_limits(TENANT, tasks(7)).await;
    watcher
        .until(|received| cap(received, TENANT) == Some(7))
        .await;
    assert_eq!(
        watcher.received[TENANT].budgets.len(),
        1,
        "it keeps its last known sum"
    );
}
