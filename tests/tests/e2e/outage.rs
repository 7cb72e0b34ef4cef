//! Postgres or a service dies and returns: services wait with a visible reason and recover.

use servo_local::LivenessTimings;
use servo_local::wait::until;
use servo_model::Service;
use servo_tests::running::durable;

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
