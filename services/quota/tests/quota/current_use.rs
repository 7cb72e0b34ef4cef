//! Tests the current use of limits, answered by fake schedulers and dispatchers.

use servo_model::Service;
use servo_proto::mesh::v1::dispatcher_mesh_service_server::{
    DispatcherMeshService, DispatcherMeshServiceServer,
};
use servo_proto::mesh::v1::scheduler_mesh_service_server::{
    SchedulerMeshService, SchedulerMeshServiceServer,
};
use servo_proto::mesh::v1::{
    CountRunsRequest, CountRunsResponse, CountUseRequest, CountUseResponse,
};
use servo_proto::v1::{
    GetPoolRequest, GetPoolResponse, ListPoolsRequest, Pool, QuotaUse, SlotHolder,
};
use tonic::{Request, Response, Status};

use crate::pools::create;
use crate::support::{PLATFORM, TENANT, World, by_user};

/// Answers the same for every tenant.
struct Busy;

#[tonic::async_trait]
impl DispatcherMeshService for Busy {
    async fn count_use(
        &self,
        request: Request<CountUseRequest>,
    ) -> Result<Response<CountUseResponse>, Status> {
        let CountUseRequest { tenant, pool } = request.into_inner();
        let holder = SlotHolder {
            workspace: tenant,
            run_id: format!("of {pool}"),
            ..Default::default()
        };
        Ok(Response::new(CountUseResponse {
            live_attempts: 5,
            queued_attempts: 1,
            pool_slots: [("db".to_owned(), 2)].into(),
            holders: (pool == "db").then_some(holder).into_iter().collect(),
        }))
    }
}

#[tonic::async_trait]
impl SchedulerMeshService for Busy {
    async fn count_runs(
        &self,
        _: Request<CountRunsRequest>,
    ) -> Result<Response<CountRunsResponse>, Status> {
        Ok(Response::new(CountRunsResponse {
            concurrent: 4,
            waiting: 3,
            today: 20,
            backfills: 2,
        }))
    }
}

/// Accepts calls and never answers.
struct Unresponsive;

#[tonic::async_trait]
impl DispatcherMeshService for Unresponsive {
    async fn count_use(
        &self,
        _: Request<CountUseRequest>,
    ) -> Result<Response<CountUseResponse>, Status> {
        std::future::pending().await
    }
}

/// A quota service with these peers and two pools.
async fn world(dispatcher: impl DispatcherMeshService) -> World {
    let world = World::prepare(1).await;
    let dispatcher = DispatcherMeshServiceServer::new(dispatcher);
    let dispatcher = world
        .serve(Service::Dispatcher, |mesh| mesh.serve(dispatcher))
        .await;
    let scheduler = SchedulerMeshServiceServer::new(Busy);
    let scheduler = world
        .serve(Service::Scheduler, |mesh| mesh.serve(scheduler))
        .await;
    world
        .launch_all(&[
            ("peers.dispatcher", &dispatcher),
            ("peers.scheduler", &scheduler),
        ])
        .await;
    for name in ["api", "db"] {
        world
            .client()
            .create_pool(by_user(create(name, 3)))
            .await
            .unwrap();
    }
    world
}

async fn listed(world: &World) -> Vec<(String, u32, bool)> {
    let list = ListPoolsRequest {
        tenant: TENANT.into(),
        ..Default::default()
    };
    let pools = world
        .client()
        .list_pools(by_user(list))
        .await
        .unwrap()
        .into_inner()
        .pools;
    pools
        .into_iter()
        .map(|pool| (pool.pool, pool.used_slots, pool.use_unknown))
        .collect()
}

async fn read(world: &World, pool: &str) -> (Pool, Vec<SlotHolder>) {
    let get = GetPoolRequest {
        tenant: TENANT.into(),
        pool: pool.into(),
    };
    let GetPoolResponse { pool, holders } = world
        .client()
        .get_pool(by_user(get))
        .await
        .unwrap()
        .into_inner();
    (pool.unwrap(), holders)
}

#[tokio::test]
async fn limits_and_pools_are_returned_with_their_current_use() {
    let world = world(Busy).await;
    let used = QuotaUse {
        concurrent_tasks: 5,
        concurrent_runs: 4,
        queued_runs: 3,
        queued_tasks: 1,
        daily_runs: 20,
        backfill_runs: 2,
    };
    assert_eq!(world.quota_of(TENANT).await.used, Some(used));
    assert_eq!(
        world.quota_of(PLATFORM).await.used,
        None,
        "the platform runs nothing"
    );
    assert_eq!(
        listed(&world).await,
        [("api".to_owned(), 0, false), ("db".to_owned(), 2, false)]
    );
    let (db, holders) = read(&world, "db").await;
    assert_eq!(
        (db.used_slots, db.use_unknown, holders.len()),
        (2, false, 1)
    );
    assert_eq!(
        (holders[0].workspace.as_str(), holders[0].run_id.as_str()),
        (TENANT, "of db")
    );
    let (api, holders) = read(&world, "api").await;
    assert_eq!(
        (api.used_slots, api.use_unknown, holders.len()),
        (0, false, 0)
    );
}

#[tokio::test]
async fn limits_are_returned_when_their_current_use_is_unknown() {
    let world = world(Unresponsive).await;
    let quota = world.quota_of(TENANT).await;
    assert_eq!(
        (quota.effective.unwrap().weight_millis, quota.used),
        (Some(1_000), None)
    );
    assert_eq!(
        listed(&world).await,
        [("api".to_owned(), 0, true), ("db".to_owned(), 0, true)]
    );
    let (db, holders) = read(&world, "db").await;
    assert_eq!((db.slots, db.use_unknown, holders.len()), (3, true, 0));
}
