//! `servo-standalone dev | migrate`, as a user would run them.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use servo_local::wait::until_true_blocking;
use servo_local::{Child, Postgres, PostgresOptions};
use tempfile::TempDir;

use crate::support::{binaries, processes_naming};

const EXIT_LIMIT: Duration = Duration::from_secs(120);

fn standalone() -> Command {
    let mut command = Command::new(binaries().join("servo-standalone"));
    command
        .env_remove("SERVO_DATABASE_URL")
        .stdin(Stdio::null());
    command
}

/// Runs `dev` until it has printed its services, interrupts it, and asserts that no process is
/// left.
fn dev_once(dir: &Path) -> Value {
    let printed = interrupt(dev(dir), dir);
    assert_eq!(processes_naming(dir), Vec::<u32>::new(), "still running");
    printed
}

/// Interrupts a running `dev`, asserts that it ends successfully, and returns its output.
fn interrupt(mut dev: Child, dir: &Path) -> Value {
    let printed = std::fs::read(dir.join("stdout")).unwrap();
    dev.signal(Signal::SIGINT).unwrap();
    let status = dev.wait_for(EXIT_LIMIT).unwrap().unwrap();
    let stderr = std::fs::read_to_string(dir.join("stderr")).unwrap();
    assert!(status.success(), "{status}: {stderr}");
    serde_json::from_slice(&printed).unwrap()
}

#[test]
fn dev_starts_nine_healthy_services_twice_and_leaves_no_process() {
    let dir = TempDir::new().unwrap();
    for _ in 0..2 {
        let printed = dev_once(dir.path());
        let services = printed["services"].as_array().unwrap();
        assert_eq!(services.len(), 9);
        for service in services {
            assert_eq!(service["healthy"], true, "{service}");
            let name = service["service"].as_str().unwrap();
            assert_eq!(service["identity"], format!("spiffe://servo/{name}"));
            assert_eq!(service["version"], env!("CARGO_PKG_VERSION"));
            assert!(!service["start_time"].as_str().unwrap().is_empty());
        }
    }
}

#[test]
fn the_standalone_binary_runs_all_services_in_one_process() {
    let dir = TempDir::new().unwrap();
    let alone = dir.path().join("bin").join("servo-standalone");
    std::fs::create_dir_all(alone.parent().unwrap()).unwrap();
    std::fs::copy(binaries().join("servo-standalone"), &alone).unwrap();
    let mesh = dir.path().join("mesh");
    let printed = interrupt(dev_with(&alone, &mesh, None), &mesh);
    let services = printed["services"].as_array().unwrap();
    assert_eq!(services.len(), 9);
    assert!(
        services.iter().all(|service| service["healthy"] == true),
        "{printed}"
    );
    let logs: Vec<_> = std::fs::read_dir(mesh.join("logs"))
        .unwrap()
        .map(|log| log.unwrap().file_name())
        .collect();
    assert_eq!(logs, ["standalone.log"]);
    assert_eq!(processes_naming(&mesh), Vec::<u32>::new(), "still running");
}

#[test]
fn busy_ports_are_skipped() {
    loop {
        let ours = TcpListener::bind(("127.0.0.1", 7400));
        let dir = TempDir::new().unwrap();
        let printed = dev_once(dir.path());
        let gateway = printed["services"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["service"] == "gateway")
            .unwrap();
        assert_eq!(gateway["healthy"], true);
        if gateway["address"] != "https://127.0.0.1:7400" {
            return;
        }
        assert!(ours.is_err(), "dev took a busy port");
        // Another process held the port and has released it since.
    }
}

/// Starts `dev` and waits until it has printed its services.
fn dev(dir: &Path) -> Child {
    dev_with(&binaries().join("servo-standalone"), dir, None)
}

fn dev_with(binary: &Path, dir: &Path, database_url: Option<&str>) -> Child {
    use std::fs::File;
    std::fs::create_dir_all(dir).unwrap();
    let printed = dir.join("stdout");
    let mut command = Child::command(binary);
    command
        .args(["dev", "--json", "--dir"])
        .arg(dir)
        .env_remove("SERVO_DATABASE_URL")
        .envs(database_url.map(|url| ("SERVO_DATABASE_URL", url)));
    command
        .stdin(Stdio::null())
        .stdout(File::create(&printed).unwrap());
    command.stderr(File::create(dir.join("stderr")).unwrap());
    let mut child = Child::spawn("dev", command).unwrap();
    let complete =
        || serde_json::from_str::<Value>(&std::fs::read_to_string(&printed).unwrap()).is_ok();
    until_true_blocking("dev to print its services", || {
        assert!(child.try_wait().unwrap().is_none(), "dev ended");
        complete()
    });
    child
}

#[test]
fn a_killed_dev_leaves_no_process() {
    let dir = TempDir::new().unwrap();
    let mut dev = dev(dir.path());
    // Only the process, not its group: its children must notice on their own.
    kill(Pid::from_raw(dev.id().cast_signed()), Signal::SIGKILL).unwrap();
    dev.wait_for(EXIT_LIMIT).unwrap();
    until_true_blocking("all processes of dev to end", || {
        processes_naming(dir.path()).is_empty()
    });
    dev_once(dir.path());
}

#[test]
fn dev_ends_with_the_reason_when_its_postgres_dies() {
    let dir = TempDir::new().unwrap();
    let mut dev = dev(dir.path());
    let pid_file =
        std::fs::read_to_string(dir.path().join("postgres/data/postmaster.pid")).unwrap();
    let postmaster: i32 = pid_file.lines().next().unwrap().parse().unwrap();
    kill(Pid::from_raw(postmaster), Signal::SIGKILL).unwrap();
    let status = dev.wait_for(EXIT_LIMIT).unwrap().expect("dev notices");
    assert!(!status.success(), "{status}");
    let stderr = std::fs::read_to_string(dir.path().join("stderr")).unwrap();
    assert!(stderr.contains("Postgres ended with signal: 9"), "{stderr}");
    assert!(stderr.contains("postgres.log"), "{stderr}");
    // Backends notice on their own that their postmaster is gone.
    until_true_blocking("all processes of dev to end", || {
        processes_naming(dir.path()).is_empty()
    });
    dev_once(dir.path());
}

#[test]
fn a_second_dev_in_the_same_directory_is_refused() {
    let dir = TempDir::new().unwrap();
    let _first = dev(dir.path());
    let second = standalone()
        .args(["dev", "--json", "--dir"])
        .arg(dir.path())
        .output()
        .unwrap();
    assert!(!second.status.success());
    let stderr = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(stderr.contains("is in use by another Servo"), "{stderr}");
}

#[test]
fn dev_uses_an_existing_postgres_whose_url_is_given() {
    let dir = TempDir::new().unwrap();
    let postgres = Postgres::start_with(
        &dir.path().join("pg"),
        PostgresOptions::without_durability(),
    )
    .unwrap();
    let own = dir.path().join("servo");
    let url = postgres.admin_url();
    let binary = binaries().join("servo-standalone");
    interrupt(dev_with(&binary, &own, Some(&url)), &own);
    assert!(
        !own.join("postgres").exists(),
        "a second Postgres was created"
    );
}

#[test]
fn migrate_prints_its_result_or_one_line_of_error() {
    let dir = TempDir::new().unwrap();
    let postgres = Postgres::start_with(dir.path(), PostgresOptions::without_durability()).unwrap();
    let migrate = |url: &str| {
        standalone()
            .args([
                "migrate",
                "--role-password",
                "secret",
                "--database-url",
                url,
            ])
            .output()
            .unwrap()
    };
    let first = String::from_utf8(migrate(&postgres.admin_url()).stdout).unwrap();
    assert!(first.contains("applied now"), "{first}");
    let second = String::from_utf8(migrate(&postgres.admin_url()).stdout).unwrap();
    assert!(second.contains("nothing to do"), "{second}");
    let wrong = migrate("postgres://nobody:wrong@127.0.0.1:1/servo");
    assert!(!wrong.status.success());
    assert_eq!(
        String::from_utf8_lossy(&wrong.stderr).lines().count(),
        1,
        "one sentence"
    );
}
