//! Postgres goes away and comes back: services wait visibly and recover by themselves.

use servo_model::Service;

use crate::support::Running;

#[tokio::test]
async fn f20_an_outage_is_told_and_survived() {
    let mut running = Running::start().await;
    running.mesh.postgres().unwrap().kill_9().unwrap();
    let told = loop {
        let status = running.mesh.status().await;
        let waiting: Vec<_> = status
            .into_iter()
            .filter(|one| one.service.has_store() && !one.healthy)
            .collect();
        if waiting.len() == 8 {
            break waiting;
        }
    };
    for one in &told {
        assert!(
            one.waiting_for.contains("Postgres"),
            "{}: {}",
            one.service,
            one.waiting_for
        );
    }
    running.mesh.postgres().unwrap().restart().unwrap();
    running.mesh.wait_until_healthy().await.unwrap();
    running.mesh.stop().unwrap();
}

#[tokio::test]
async fn a_killed_service_comes_back_with_the_same_place_in_the_mesh() {
    let mut running = Running::start().await;
    for service in [Service::Scheduler, Service::Gateway] {
        running.mesh.process(service).unwrap().kill_group().unwrap();
        running.mesh.launch(service).unwrap();
    }
    running.mesh.wait_until_healthy().await.unwrap();
    running.mesh.stop().unwrap();
}
