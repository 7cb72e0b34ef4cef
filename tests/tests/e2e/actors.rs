//! A panic of a supervised actor ends its process with the actor's name in the log, and the mesh
//! recovers.

use servo_local::LocalMesh;
use servo_local::wait::until;
use servo_model::Service;
use servo_tests::manifest::chain;
use servo_tests::user::User;

use crate::support::Running;

/// Every actor that runs in a mesh at rest, by service; `tidy` compares the names with the code.
const ACTORS: [(Service, &[&str]); 3] = [
    (
        Service::Scheduler,
        &[
            "bus doorbell",
            "capacity doorbell",
            "capacity listener",
            "lane",
            "ledger flusher",
            "plan batcher",
            "plan requester",
            "run lookup",
            "signals",
        ],
    ),
    (
        Service::Dispatcher,
        &[
            "engine",
            "input reader",
            "lease release",
            "push queue",
            "push recorder",
            "pusher",
            "pusher stop",
            "queue listener",
            "shard changes",
        ],
    ),
    (Service::Callback, &["forward", "heartbeats", "logs"]),
];

#[tokio::test]
async fn a_panic_of_an_actor_ends_its_process_and_the_mesh_recovers() {
    let mut running = Running::start().await;
    let rounds = ACTORS.iter().map(|(_, names)| names.len()).max().unwrap();
    for round in 0..rounds {
        let planted: Vec<(Service, &str)> = ACTORS
            .iter()
            .filter_map(|(service, names)| Some((*service, *names.get(round)?)))
            .collect();
        for (service, actor) in &planted {
            running.mesh.kill_9(*service).unwrap();
            let variables = [("SERVO_PLANT_PANIC", *actor)];
            running.mesh.launch_with(*service, &variables).unwrap();
        }
        for (service, actor) in &planted {
            ends_with_its_name(&mut running.mesh, *service, actor).await;
            running.mesh.launch(*service).unwrap();
        }
    }
    running.mesh.wait_until_healthy().await.unwrap();
    let user = User::of(&running.mesh).unwrap();
    user.deploy(chain(3)).await.unwrap();
    let worker = user.start_worker(2);
    let run = user.trigger(&["*"]).await.unwrap();
    let run = user.wait_for_end(&run.run_id).await.unwrap();
    assert_eq!(run.state(), servo_client::api::RunState::Succeeded);
    drop(worker);
    running.mesh.stop().await.unwrap();
}

async fn ends_with_its_name(mesh: &mut LocalMesh, service: Service, actor: &str) {
    let what = format!("{service} to end after the panic of {actor:?}");
    let status = until(&what, async || {
        mesh.process(service).unwrap().try_wait().unwrap()
    })
    .await;
    assert_eq!(status.code(), Some(70), "{service}, {actor}");
    let log = std::fs::read_to_string(mesh.log_path(service)).unwrap();
    let last = log
        .lines()
        .rev()
        .find(|line| line.contains("an actor panicked"));
    let line = last.unwrap_or_else(|| panic!("{service} says nothing of {actor:?}:\n{log}"));
    assert!(line.contains(&format!("\"{actor}\"")), "{line}");
}
