//! The usage of limits while tasks run and afterwards, the same at every dispatcher.

use std::collections::BTreeSet;

use servo_client::api;
use servo_local::wait::until_true;
use servo_local::{Instance, TENANT};
use servo_model::Service;
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::dispatcher_mesh_service_client::DispatcherMeshServiceClient;
use servo_tests::manifest::{asset, manifest};
use servo_tests::user::{User, WORKSPACE};

use crate::instances::wait_for_shards;
use crate::support::{Running, peer};

const RIVAL: &str = "rival";
const POOL: &str = "db";
const SLEEP: &str = r#"{"do":"sleep","ms":60000}"#;

async fn used(user: &User) -> Option<api::QuotaUse> {
    let request = api::GetQuotaRequest {
        tenant: user.tenant().to_owned(),
    };
    user.client
        .quota()
        .get_quota(request)
        .await
        .unwrap()
        .into_inner()
        .used
}

async fn wait_for_usage(user: &User, wanted: api::QuotaUse) {
    until_true(&format!("the usage {wanted:?}"), async || {
        used(user).await == Some(wanted)
    })
    .await;
}

async fn pool(user: &User) -> (api::Pool, Vec<api::SlotHolder>) {
    let request = api::GetPoolRequest {
        tenant: user.tenant().to_owned(),
        pool: POOL.to_owned(),
    };
    let answer = user
        .client
        .quota()
        .get_pool(request)
        .await
        .unwrap()
        .into_inner();
    (answer.pool.unwrap(), answer.holders)
}

async fn pools(user: &User) -> Vec<(String, u32, bool)> {
    let request = api::ListPoolsRequest {
        tenant: user.tenant().to_owned(),
        ..Default::default()
    };
    let pools = user
        .client
        .quota()
        .list_pools(request)
        .await
        .unwrap()
        .into_inner()
        .pools;
    pools
        .into_iter()
        .map(|pool| (pool.pool, pool.used_slots, pool.use_unknown))
        .collect()
}

/// The counts that each of the two dispatchers returns to the quota service.
async fn counted(running: &Running) -> [mesh_pb::CountUseResponse; 2] {
    let count = async |number| {
        let peer = peer(&running.mesh, Service::Quota, (Service::Dispatcher, number));
        let request = mesh_pb::CountUseRequest {
            tenant: TENANT.to_owned(),
            pool: POOL.to_owned(),
        };
        DispatcherMeshServiceClient::new(peer)
            .count_use(request)
            .await
            .unwrap()
            .into_inner()
    };
    [count(0).await, count(1).await]
}

/// Two gateways and two dispatchers, each with half of the tenants.
async fn twins() -> Running {
    let twins = [Service::Gateway, Service::Dispatcher];
    let running = Running::start_with(|options| {
        twins
            .iter()
            .fold(options.tenant(RIVAL), |options, service| {
                options.instances(*service, 2)
            })
    });
    let running = running.await;
    for number in [0, 1] {
        wait_for_shards(
            &running.mesh,
            Instance {
                service: Service::Dispatcher,
                number,
            },
            false,
        )
        .await;
    }
    running
}

#[tokio::test]
async fn every_dispatcher_returns_the_usage_of_limits() {
    let running = twins().await;
    let gateways = [0, 1].map(|number| User::at(&running.mesh, number, TENANT).unwrap());
    let rivals = [0, 1].map(|number| User::at(&running.mesh, number, RIVAL).unwrap());
    let user = &gateways[0];
    user.create_pool(POOL, 3).await.unwrap();
    user.create_pool("idle", 3).await.unwrap();
    let pooled = |key| api::AssetDefinition {
        pool: POOL.to_owned(),
        ..asset(key, &[], SLEEP)
    };
    let assets = vec![
        pooled("used/a"),
        pooled("used/b"),
        asset("used/c", &[], SLEEP),
    ];
    user.deploy(manifest(assets)).await.unwrap();
    let nothing = api::QuotaUse::default();
    wait_for_usage(user, nothing).await;

    let _worker = user.start_worker(8);
    let run = user.trigger(&["used.*"]).await.unwrap().run_id;
    let busy = api::QuotaUse {
        concurrent_tasks: 3,
        concurrent_runs: 1,
        daily_runs: 1,
        ..nothing
    };
    wait_for_usage(user, busy).await;
    let listed = user.dispatches().await.unwrap();
    assert_eq!(listed.len(), 3);
    assert_eq!(
        gateways[1].dispatches().await.unwrap(),
        listed,
        "both dispatchers return the same"
    );
    let in_pool = listed.iter().filter(|dispatch| dispatch.pool == POOL);
    let in_pool: BTreeSet<_> = in_pool
        .map(|one| (&*one.attempt_id, &*one.task_id))
        .collect();
    let (db, holders) = pool(user).await;
    assert_eq!(
        (db.used_slots, db.use_unknown, holders.len()),
        (2, false, 2)
    );
    assert_eq!(
        holders
            .iter()
            .map(|one| (&*one.attempt_id, &*one.task_id))
            .collect::<BTreeSet<_>>(),
        in_pool
    );
    assert!(
        holders
            .iter()
            .all(|one| one.run_id == run && one.workspace == WORKSPACE)
    );
    let since: Vec<_> = holders
        .iter()
        .map(|one| one.since_time.map(|at| (at.seconds, at.nanos)))
        .collect();
    assert!(since[0].is_some() && since[0] <= since[1], "{since:?}");
    assert_eq!(
        pools(user).await,
        [(POOL.to_owned(), 2, false), ("idle".to_owned(), 0, false)]
    );
    let [one, other] = counted(&running).await;
    assert_eq!((one.live_attempts, &one.holders), (3, &holders));
    assert_eq!(one, other);

    for rival in &rivals {
        assert_eq!(used(rival).await, Some(nothing));
        let refused = rival.dispatches_of(TENANT).await.unwrap_err();
        assert!(
            format!("{refused:#}").contains("is not open to this caller"),
            "{refused:#}"
        );
    }

    user.cancel(&run).await.unwrap();
    user.wait_for_end(&run).await.unwrap();
    wait_for_usage(
        user,
        api::QuotaUse {
            daily_runs: 1,
            ..nothing
        },
    )
    .await;
    let (db, holders) = pool(user).await;
    assert_eq!(
        (db.used_slots, db.use_unknown, holders.len()),
        (0, false, 0)
    );
    assert_eq!(
        pools(user).await,
        [(POOL.to_owned(), 0, false), ("idle".to_owned(), 0, false)]
    );
    for gateway in &gateways {
        assert_eq!(gateway.dispatches().await.unwrap(), []);
    }
    running.mesh.stop().await.unwrap();
}
