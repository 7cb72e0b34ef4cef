//! Postgres or a service dies and returns: services wait with a visible reason and recover.

use servo_client::api;
use servo_local::LivenessTimings;
use servo_local::wait::until;
use servo_model::Service;
use servo_proto::v1::scheduler_service_client::SchedulerServiceClient;
use servo_tests::manifest::{asset, manifest};
use servo_tests::running::durable;
use servo_tests::user::{User, WORKSPACE};
use tonic::{Code, Request};
use tonic_types::StatusExt;

use crate::access::raw_call::gateway;
use crate::support::Running;

#[tokio::test]
async fn f20_services_report_an_outage_of_postgres_and_recover() {
    let mut running = Running::start_with(durable).await;
    running.mesh.postgres().unwrap().kill_9().unwrap();
    let waiting = until(
        "all services with a store to notice the outage",
        async || {
            let mut status = running.mesh.status().await;
            status.retain(|status| status.service.has_store() && !status.healthy);
            (status.len() == 8).then_some(status)
        },
    )
    .await;
    for status in &waiting {
        assert!(
            status.waiting_for.contains("Postgres"),
            "{}: {}",
            status.service,
            status.waiting_for
        );
    }
    running.mesh.postgres().unwrap().restart().unwrap();
    running.mesh.wait_until_healthy().await.unwrap();
    running.mesh.stop().await.unwrap();
}

/// The gateway's clients learn that they may open the stream again.
#[tokio::test]
async fn a_stream_whose_service_dies_ends_as_unavailable() {
    let mut running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    user.deploy(manifest(vec![asset("shop/orders", &[], "")]))
        .await
        .unwrap();
    let run = user.trigger(&["shop/orders"]).await.unwrap();
    let mut watch = Request::new(api::WatchRunRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: run.run_id,
        ..Default::default()
    });
    let key = format!("Bearer {}", running.mesh.api_key_of(user.tenant()));
    let metadata = watch.metadata_mut();
    metadata.insert("authorization", key.parse().unwrap());
    // Without the client's reconnects.
    let mut client = SchedulerServiceClient::new(gateway(&running.mesh));
    let mut stream = client.watch_run(watch).await.unwrap().into_inner();
    stream.message().await.unwrap().expect("the run as it is");
    running.mesh.kill_9(Service::Scheduler).unwrap();
    let ended = loop {
        if let Err(status) = stream.message().await {
            break status;
        }
    };
    assert_eq!(ended.code(), Code::Unavailable, "{ended:?}");
    assert!(ended.get_details_retry_info().is_some(), "{ended:?}");
}

#[tokio::test]
async fn a_killed_service_can_be_restarted_at_the_same_address() {
    let mut running = Running::start_with(|options| options.timings(LivenessTimings::FAST)).await;
    for service in [Service::Scheduler, Service::Gateway] {
        running.mesh.process(service).unwrap().kill_group().unwrap();
        running.mesh.launch(service).unwrap();
    }
    running.mesh.wait_until_healthy().await.unwrap();
    running.mesh.stop().await.unwrap();
}
