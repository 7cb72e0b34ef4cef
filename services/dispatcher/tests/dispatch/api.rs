//! The API for users and other services.

use servo_client::api;
use servo_client::worker::{Attempt, AttemptOutcome, Handler};
use servo_mesh::Reason;
use servo_model::{RunId, Service};
use servo_proto::mesh::v1 as mesh_pb;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Status};

use crate::world::*;

/// Runs until it is cancelled.
struct Endless;

impl Handler for Endless {
    async fn run(&self, attempt: Attempt) -> AttemptOutcome {
        attempt.cancelled().await;
        AttemptOutcome::cancelled()
    }
}

fn tenant() -> String {
    TENANT.to_owned()
}

fn reason<T>(answer: Result<T, Status>) -> Option<Reason> {
    servo_mesh::error::reason_of(&answer.err().expect("it was refused"))
}

async fn explain(
    world: &World,
    dispatcher: &Running,
    run: RunId,
    ordinal: u32,
) -> api::Explanation {
    let request = mesh_pb::ExplainAdmissionRequest {
        tenant: tenant(),
        workspace: "prod".into(),
        run_id: run.to_string(),
        tasks: vec![api::TaskRef {
            ordinal,
            map_index: None,
        }],
    };
    let answer = world
        .internal_client(Service::Scheduler, dispatcher)
        .explain_admission(request)
        .await;
    answer.unwrap().into_inner().explanations.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn pause_stops_admission_until_resumed() {
    let world = World::start().await;
    let dispatcher = world.dispatcher().await;
    until("it holds all", async || world.holders().await.len() == 16).await;
    let mut gateway = world.peer(Service::Gateway, &dispatcher);
    let pause = || {
        from_ada(api::PauseDispatchRequest {
            request_id: new_request_id(),
            tenant: tenant(),
            comment: "night".into(),
            ..Default::default()
        })
    };
    let first = gateway.pause_dispatch(pause()).await.unwrap().into_inner();
    let again = gateway.pause_dispatch(pause()).await.unwrap().into_inner();
    assert_eq!(first, again, "the same pause again changes nothing");
    let held = first.pause.unwrap();
    assert_eq!(
        (held.version, held.requested_by.unwrap().principal),
        (1, "user:ada".to_owned())
    );
    let run = world.run(1, 3, api::PlannedAsset::default()).await;
    until("it waits for the pause", async || {
        explain(&world, &dispatcher, run, 0).await.reason() == api::WaitReason::DispatchPaused
    })
    .await;
    world.worker(&dispatcher, TENANT, slots(2), Endless);
    let listed = from_ada(api::ListDispatchPausesRequest {
        tenant: tenant(),
        ..Default::default()
    });
    let listed = gateway
        .list_dispatch_pauses(listed)
        .await
        .unwrap()
        .into_inner()
        .pauses;
    assert_eq!(
        listed
            .iter()
            .map(|pause| &pause.pause_id)
            .collect::<Vec<_>>(),
        [&held.pause_id]
    );
    assert_eq!(world.owner.claims(), 0);

    let resume = |expected_version| {
        let pause_id = held.pause_id.clone();
        from_ada(api::ResumeDispatchRequest {
            request_id: new_request_id(),
            tenant: tenant(),
            pause_id,
            expected_version,
            ..Default::default()
        })
    };
    assert_eq!(
        reason(gateway.resume_dispatch(resume(7)).await),
        Some(Reason::VersionConflict)
    );
    gateway.resume_dispatch(resume(1)).await.unwrap();
    assert_eq!(
        reason(gateway.resume_dispatch(resume(0)).await),
        Some(Reason::InvalidState)
    );
    let mut unknown = resume(0);
    unknown.get_mut().pause_id = "pause_nobody".to_owned();
    let unknown = gateway.resume_dispatch(unknown).await;
    assert_eq!(unknown.as_ref().unwrap_err().code(), Code::NotFound);
    assert_eq!(reason(unknown), Some(Reason::DispatchPauseNotFound));
    until("work begins", async || world.owner.claims() == 2).await;
    let waits = explain(&world, &dispatcher, run, 2).await;
    assert_eq!(
        (waits.reason(), waits.position),
        (api::WaitReason::FairShare, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_is_listed_drained_and_killed() {
    let world = World::start().await;
    let dispatcher = world.dispatcher().await;
    let info = api::WorkerInfo {
        capabilities: vec!["duckdb".into()],
        ..slots(2)
    };
    let (_, worker) = world.worker(&dispatcher, TENANT, info, Endless);
    world.run(1, 2, api::PlannedAsset::default()).await;
    until("it works", async || world.owner.claims() == 2).await;
    let mut gateway = world.peer(Service::Gateway, &dispatcher);
    let mut list = async |filter: &str| {
        let request = api::ListWorkersRequest {
            tenant: tenant(),
            filter: filter.into(),
            ..Default::default()
        };
        gateway
            .list_workers(from_ada(request))
            .await
            .map(|answer| answer.into_inner().workers)
    };
    let known = list("state = ACTIVE AND capabilities : duckdb")
        .await
        .unwrap();
    assert_eq!(
        (known.len(), known[0].active_attempts, known[0].version),
        (1, 2, 0)
    );
    assert_eq!(list("state = LOST").await.unwrap(), []);
    assert_eq!(reason(list("slots = 2").await), Some(Reason::InvalidFilter));

    let worker_id = known[0].worker_id.clone();
    let drain = || {
        from_ada(api::DrainWorkerRequest {
            request_id: new_request_id(),
            tenant: tenant(),
            worker_id: worker_id.clone(),
            ..Default::default()
        })
    };
    let drained = gateway.drain_worker(drain()).await.unwrap().into_inner();
    assert_eq!(
        drained.worker.as_ref().unwrap().state(),
        api::WorkerState::Draining
    );
    assert_eq!(
        gateway
            .drain_worker(drain())
            .await
            .unwrap()
            .into_inner()
            .accepted_event_id,
        drained.accepted_event_id
    );
    let kill = from_ada(api::KillWorkerRequest {
        request_id: new_request_id(),
        tenant: tenant(),
        worker_id,
        expected_version: 9,
        ..Default::default()
    });
    assert_eq!(
        reason(gateway.kill_worker(kill).await),
        Some(Reason::VersionConflict)
    );
    let dispatches = api::ListDispatchesRequest {
        tenant: tenant(),
        workspace: "prod".into(),
        ..Default::default()
    };
    let dispatches = gateway
        .list_dispatches(from_ada(dispatches))
        .await
        .unwrap()
        .into_inner()
        .dispatches;
    assert_eq!(
        dispatches
            .iter()
            .map(|d| d.task_key.as_str())
            .collect::<Vec<_>>()
            .len(),
        2
    );
    world.owner.cancel_all();
    tokio::time::timeout(TEST_TIMEOUT, worker)
        .await
        .expect("it leaves when it is drained")
        .unwrap()
        .unwrap();
    assert_eq!(world.reports.outcomes(), [(1, api::Outcome::Cancelled); 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_worker_returns_its_attempts() {
    let world = World::start().await;
    let dispatcher = world.dispatcher().await;
    let (_, worker) = world.worker(&dispatcher, TENANT, slots(2), Endless);
    world.run(1, 2, api::PlannedAsset::default()).await;
    until("it works", async || world.owner.claims() == 2).await;
    let mut gateway = world.peer(Service::Gateway, &dispatcher);
    let listed = from_ada(api::ListWorkersRequest {
        tenant: tenant(),
        ..Default::default()
    });
    let worker_id = gateway
        .list_workers(listed)
        .await
        .unwrap()
        .into_inner()
        .workers[0]
        .worker_id
        .clone();
    let kill = api::KillWorkerRequest {
        request_id: new_request_id(),
        tenant: tenant(),
        worker_id,
        ..Default::default()
    };
    gateway.kill_worker(from_ada(kill)).await.unwrap();
    tokio::time::timeout(TEST_TIMEOUT, worker)
        .await
        .expect("it leaves")
        .unwrap()
        .unwrap();
    assert_eq!(
        world.reports.outcomes(),
        [(1, api::Outcome::Interrupted); 2]
    );
}

async fn list(
    world: &World,
    dispatcher: &Running,
    page_token: &str,
) -> api::ListDispatchesResponse {
    let request = api::ListDispatchesRequest {
        tenant: tenant(),
        workspace: "prod".into(),
        page_size: 1,
        page_token: page_token.into(),
        ..Default::default()
    };
    world
        .peer(Service::Gateway, dispatcher)
        .list_dispatches(from_ada(request))
        .await
        .unwrap()
        .into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_instance_answers_from_the_holders_memory() {
    let world = World::start().await;
    let both = [world.dispatcher().await, world.dispatcher().await];
    let of = async |running: &Running| {
        world
            .holders()
            .await
            .iter()
            .filter(|address| **address == running.address)
            .count()
    };
    until("both hold half", async || {
        of(&both[0]).await == 8 && of(&both[1]).await == 8
    })
    .await;
    world.worker(&both[0], TENANT, slots(2), Endless);
    let run = world
        .run(
            1,
            3,
            api::PlannedAsset {
                pool: "db".into(),
                ..Default::default()
            },
        )
        .await;
    until("it works", async || world.owner.live() == 2).await;
    for (one, other) in [(&both[0], &both[1]), (&both[1], &both[0])] {
        let request = mesh_pb::CountUseRequest {
            tenant: tenant(),
            pool: "db".into(),
        };
        let counted = world
            .internal_client(Service::Quota, one)
            .count_use(request)
            .await
            .unwrap()
            .into_inner();
        assert_eq!((counted.live_attempts, counted.queued_attempts), (2, 0));
        assert_eq!(counted.pool_slots, [("db".to_owned(), 2)].into());
        let runs: Vec<_> = counted
            .holders
            .iter()
            .map(|holder| holder.run_id.clone())
            .collect();
        assert_eq!(runs, [run.to_string(), run.to_string()]);
        let first = list(&world, one, "").await;
        let second = list(&world, other, &first.next_page_token).await;
        let keys: Vec<_> = first
            .dispatches
            .iter()
            .chain(&second.dispatches)
            .map(|one| &one.attempt_id)
            .collect();
        let held: Vec<_> = counted
            .holders
            .iter()
            .map(|holder| &holder.attempt_id)
            .collect();
        assert_eq!((keys, second.next_page_token.as_str()), (held, ""));
        assert_eq!(
            explain(&world, one, run, 2).await.reason(),
            api::WaitReason::FairShare
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forwarded_call_is_not_forwarded_again_and_users_cannot_forward() {
    let world = World::start().await;
    let both = [world.dispatcher().await, world.dispatcher().await];
    until("all is held", async || world.holders().await.len() == 16).await;
    let held = || mesh_pb::ListHeldDispatchesRequest {
        tenant: tenant(),
        workspace: "prod".into(),
        ..Default::default()
    };
    until("exactly one holds the tenant", async || {
        let mut refused = 0;
        for one in &both {
            let answer = world
                .internal_client(Service::Dispatcher, one)
                .list_held_dispatches(held())
                .await;
            refused += usize::from(
                answer.is_err_and(|why| reason::<()>(Err(why)) == Some(Reason::NotHolder)),
            );
        }
        refused == 1
    })
    .await;
    let by_hand = world
        .internal_client(Service::Gateway, &both[0])
        .list_held_dispatches(from_ada(held()))
        .await;
    assert_eq!(reason(by_hand), Some(Reason::CallerNotAllowed));
    let counted = mesh_pb::CountUseRequest {
        tenant: tenant(),
        ..Default::default()
    };
    let by_hand = world
        .internal_client(Service::Gateway, &both[0])
        .count_use(from_ada(counted))
        .await;
    assert_eq!(reason(by_hand), Some(Reason::CallerNotAllowed));
    let foreign = api::ListDispatchesRequest {
        tenant: "evil".into(),
        workspace: "prod".into(),
        ..Default::default()
    };
    let foreign = world
        .peer(Service::Gateway, &both[0])
        .list_dispatches(from_ada(foreign))
        .await;
    assert_eq!(reason(foreign), Some(Reason::TenantMismatch));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_are_rejected_with_a_reason() {
    let world = World::start().await;
    let dispatcher = world.dispatcher().await;
    until("it holds all", async || world.holders().await.len() == 16).await;
    let mut worker = world
        .worker_client(TENANT, &dispatcher.address)
        .dispatcher();
    let good = api::RegisterWorkerRequest {
        tenant: tenant(),
        worker_id: servo_model::WorkerId::from_bytes([1; 16]).to_string(),
        session: "s".into(),
        info: Some(slots(1)),
    };
    worker.register_worker(good.clone()).await.unwrap();
    let wrong = [
        api::RegisterWorkerRequest {
            worker_id: "x".into(),
            ..good.clone()
        },
        api::RegisterWorkerRequest {
            session: String::new(),
            ..good.clone()
        },
        api::RegisterWorkerRequest {
            info: None,
            ..good.clone()
        },
        api::RegisterWorkerRequest {
            info: Some(slots(0)),
            ..good.clone()
        },
    ];
    for wrong in wrong {
        assert_eq!(
            reason(worker.register_worker(wrong).await),
            Some(Reason::InvalidField)
        );
    }
    let nul = api::RegisterWorkerRequest {
        session: "a\0b".into(),
        ..good.clone()
    };
    assert_eq!(
        reason(worker.register_worker(nul).await),
        Some(Reason::InvalidField)
    );
    let info = Some(api::WorkerInfo {
        name: "a\0b".into(),
        ..slots(1)
    });
    let nul = api::RegisterWorkerRequest {
        info,
        ..good.clone()
    };
    assert_eq!(
        reason(worker.register_worker(nul).await),
        Some(Reason::InvalidField)
    );
    let other = api::RegisterWorkerRequest {
        tenant: "evil".into(),
        ..good.clone()
    };
    assert_eq!(
        reason(worker.register_worker(other).await),
        Some(Reason::TenantMismatch)
    );
    let open = api::PullOpen {
        session: "another".into(),
        ..Default::default()
    };
    let open = api::PullTasksRequest {
        tenant: tenant(),
        worker_id: good.worker_id,
        message: Some(api::pull_tasks_request::Message::Open(open)),
    };
    let pulled = worker.pull_tasks(tokio_stream::iter([open])).await;
    assert_eq!(reason(pulled), Some(Reason::WorkerNotFound));
    let mut gateway = world.peer(Service::Gateway, &dispatcher);
    let worker_id = servo_model::WorkerId::from_bytes([9; 16]).to_string();
    let unknown = api::DrainWorkerRequest {
        request_id: new_request_id(),
        tenant: tenant(),
        worker_id,
        ..Default::default()
    };
    assert_eq!(
        reason(gateway.drain_worker(from_ada(unknown)).await),
        Some(Reason::WorkerNotFound)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn same_worker_id_in_another_tenant_does_not_block_a_worker() {
    let world = World::start().await;
    let dispatcher = world.dispatcher().await;
    until("it holds all", async || world.holders().await.len() == 16).await;
    let open = async |tenant: &str, worker_id: &str| {
        let mut worker = world
            .worker_client(tenant, &dispatcher.address)
            .dispatcher();
        let register = api::RegisterWorkerRequest {
            tenant: tenant.into(),
            worker_id: worker_id.to_owned(),
            session: "s".into(),
            info: Some(slots(1)),
        };
        worker.register_worker(register).await.unwrap();
        let open = api::PullOpen {
            session: "s".into(),
            ..Default::default()
        };
        let open = api::PullTasksRequest {
            tenant: tenant.into(),
            worker_id: worker_id.to_owned(),
            message: Some(api::pull_tasks_request::Message::Open(open)),
        };
        let (requests, sent) = tokio::sync::mpsc::unbounded_channel();
        requests.send(open).unwrap();
        // The sender is kept, because the stream ends when it is dropped.
        (
            worker
                .pull_tasks(UnboundedReceiverStream::new(sent))
                .await
                .unwrap()
                .into_inner(),
            requests,
        )
    };
    let mut gateway = world.peer(Service::Gateway, &dispatcher);
    for (number, order) in [(1, ["evil", "-", TENANT]), (2, [TENANT, "evil", "-"])] {
        let worker_id = servo_model::WorkerId::from_bytes([number; 16]).to_string();
        let mut streams = Vec::new();
        for tenant in order {
            streams.push((tenant, open(tenant, &worker_id).await));
        }
        let drain = api::DrainWorkerRequest {
            request_id: new_request_id(),
            tenant: tenant(),
            worker_id,
            ..Default::default()
        };
        gateway.drain_worker(from_ada(drain)).await.unwrap();
        let (_, (received, _)) = streams
            .iter_mut()
            .find(|(tenant, _)| *tenant == TENANT)
            .unwrap();
        while !matches!(
            received
                .message()
                .await
                .unwrap()
                .expect("the stream stays open")
                .message,
            Some(api::pull_tasks_response::Message::Drain(_))
        ) {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_commands_are_rejected_by_field() {
    let world = World::start().await;
    let dispatcher = world.dispatcher().await;
    until("it holds all", async || world.holders().await.len() == 16).await;
    let mut gateway = world.peer(Service::Gateway, &dispatcher);
    let worker_id = servo_model::WorkerId::from_bytes([9; 16]).to_string();
    for comment in ["a\0b".to_owned(), "x".repeat(64 << 10)] {
        let pause = api::PauseDispatchRequest {
            request_id: new_request_id(),
            tenant: tenant(),
            comment,
            ..Default::default()
        };
        let comment = pause.comment.clone();
        assert_eq!(
            reason(gateway.pause_dispatch(from_ada(pause)).await),
            Some(Reason::InvalidField)
        );
        let resume = api::ResumeDispatchRequest {
            request_id: new_request_id(),
            tenant: tenant(),
            comment: comment.clone(),
            ..Default::default()
        };
        assert_eq!(
            reason(gateway.resume_dispatch(from_ada(resume)).await),
            Some(Reason::InvalidField)
        );
        let (worker_id, tenant) = (worker_id.clone(), tenant());
        let kill = api::KillWorkerRequest {
            request_id: new_request_id(),
            tenant,
            worker_id,
            comment,
            ..Default::default()
        };
        assert_eq!(
            reason(gateway.kill_worker(from_ada(kill)).await),
            Some(Reason::InvalidField)
        );
    }
    let pool = api::PauseDispatchRequest {
        request_id: new_request_id(),
        tenant: tenant(),
        pool: "a\0b".into(),
        ..Default::default()
    };
    assert_eq!(
        reason(gateway.pause_dispatch(from_ada(pool)).await),
        Some(Reason::InvalidField)
    );
    let pause_id = "a\0b".to_owned();
    let resume = api::ResumeDispatchRequest {
        request_id: new_request_id(),
        tenant: tenant(),
        pause_id,
        ..Default::default()
    };
    assert_eq!(
        reason(gateway.resume_dispatch(from_ada(resume)).await),
        Some(Reason::InvalidField)
    );
    for seconds in [-1, i64::MAX, 400_000_000_000] {
        let drain = api::DrainWorkerRequest {
            request_id: new_request_id(),
            tenant: tenant(),
            worker_id: worker_id.clone(),
            grace: Some(prost_types::Duration { seconds, nanos: 0 }),
            ..Default::default()
        };
        assert_eq!(
            reason(gateway.drain_worker(from_ada(drain)).await),
            Some(Reason::InvalidField)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_first_pauses_return_the_same_pause() {
    let world = World::start().await;
    let dispatcher = world.dispatcher().await;
    until("it holds all", async || world.holders().await.len() == 16).await;
    for pool in 0..8 {
        let pauses = (0..4).map(|number| {
            let mut gateway = world.peer(Service::Gateway, &dispatcher);
            let (pool, comment) = (pool.to_string(), number.to_string());
            let pause = api::PauseDispatchRequest {
                request_id: new_request_id(),
                tenant: tenant(),
                pool,
                comment,
                ..Default::default()
            };
            tokio::spawn(async move {
                gateway
                    .pause_dispatch(from_ada(pause))
                    .await
                    .unwrap()
                    .into_inner()
            })
        });
        let pauses: Vec<_> = pauses.collect();
        let mut received = Vec::new();
        for pause in pauses {
            received.push(pause.await.unwrap());
        }
        assert!(
            received.iter().all(|one| *one == received[0]),
            "{received:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_paged_until_they_are_deleted() {
    let world = World::start().await;
    let dispatcher = world.dispatcher().await;
    until("it holds all", async || world.holders().await.len() == 16).await;
    let mut worker = world
        .worker_client(TENANT, &dispatcher.address)
        .dispatcher();
    for (number, name) in [(1, "b"), (2, "a"), (3, "B"), (4, "a")] {
        let register = api::RegisterWorkerRequest {
            tenant: tenant(),
            worker_id: servo_model::WorkerId::from_bytes([number; 16]).to_string(),
            session: "s".into(),
            info: Some(api::WorkerInfo {
                name: name.into(),
                ..slots(1)
            }),
        };
        worker.register_worker(register).await.unwrap();
    }
    let list = async |filter: &str| {
        let (mut names, mut page_token) = (Vec::new(), String::new());
        loop {
            let (tenant, filter) = (tenant(), filter.into());
            let request = api::ListWorkersRequest {
                tenant,
                filter,
                page_size: 1,
                page_token,
            };
            let mut gateway = world.peer(Service::Gateway, &dispatcher);
            let page = gateway
                .list_workers(from_ada(request))
                .await
                .unwrap()
                .into_inner();
            names.extend(
                page.workers
                    .into_iter()
                    .map(|worker| worker.info.unwrap().name),
            );
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return names;
            }
        }
    };
    assert_eq!(list("").await, ["B", "a", "a", "b"]);
    assert_eq!(list("name = a").await, ["a", "a"]);
    world
        .change(
            "UPDATE dispatcher.workers SET state = 4, seen_at = seen_at - interval '15 days' WHERE name = 'a';
             UPDATE dispatcher.workers SET state = 3, seen_at = seen_at - interval '13 days' WHERE name = 'b'",
        )
        .await;
    until("the old ones are forgotten", async || {
        list("").await == ["B", "b"]
    })
    .await;
}
