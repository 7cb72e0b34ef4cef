//! A wrong configuration ends the process with an error that names it; an unreachable dependency is
//! waited for with a visible reason.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use servo_local::wait::until_true_blocking;
use servo_local::{Ca, Child, Issue, free_port};
use servo_model::Service;
use tempfile::TempDir;

use crate::support::binaries;

/// A folder with a valid configuration of the planner, which tests make invalid in one way.
struct Setup {
    dir: TempDir,
    ca: Ca,
}

impl Setup {
    fn new() -> Setup {
        let setup = Setup {
            dir: TempDir::new().unwrap(),
            ca: Ca::new().unwrap(),
        };
        fs::write(setup.path("ca.crt"), setup.ca.certificate()).unwrap();
        setup.certificate(&Issue::identity(&Service::Planner.spiffe_id()));
        setup
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn certificate(&self, issue: &Issue) {
        self.ca
            .issue(issue)
            .unwrap()
            .write(self.dir.path(), "planner")
            .unwrap();
    }

    /// Runs the planner with the valid configuration and these lines after it.
    fn run(&self, more: &str) -> Output {
        planner(&self.write(more), &[])
    }

    fn write(&self, more: &str) -> PathBuf {
        let file = |name| self.path(name).display().to_string();
        let (certificate, key, ca) = (file("planner.crt"), file("planner.key"), file("ca.crt"));
        let config = format!(
            "[tls]\ncertificate = '{certificate}'\nkey = '{key}'\nca = '{ca}'\n\
             [database]\nurl = 'postgres://127.0.0.1:1/servo'\npassword = 'x'\n[paging]\nkeys = ['0123456789abcdef0123456789abcdef']\n{more}\n"
        );
        fs::write(self.path("planner.toml"), config).unwrap();
        self.path("planner.toml")
    }
}

fn planner(config: &Path, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(binaries().join("servo-planner"));
    command
        .env("SERVO_CONFIG", config)
        .envs(variables.iter().copied());
    command.stdin(Stdio::null()).output().unwrap()
}

/// Asserts that the process ended with exit code 2 and named all of `words`.
#[track_caller]
fn refused(output: &Output, words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    for word in words {
        assert!(stderr.contains(word), "`{word}` is missing in: {stderr}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[test]
fn an_unknown_key_is_named_with_a_suggestion() {
    refused(
        &Setup::new().run("[server]\nlisten_adress = '127.0.0.1:0'"),
        &["server.listen_adress", "planner.toml"],
    );
    refused(
        &Setup::new().run("[server]\nlistn = '127.0.0.1:0'"),
        &["server.listn", "did you mean `listen`"],
    );
}

#[test]
fn an_invalid_value_is_named_with_its_key() {
    refused(
        &Setup::new().run("[server]\nlisten = 'nowhere'"),
        &["server.listen", "nowhere"],
    );
    refused(
        &Setup::new().run("[server]\ngrace = 'soon'"),
        &["server.grace", "soon"],
    );
}

#[test]
fn all_faults_are_reported_at_once() {
    let output =
        Setup::new().run("[server]\ngrace = 'soon'\nlistn = 'x'\n[peers]\nplaner = 'nowhere'");
    refused(
        &output,
        &["server.grace", "server.listn", "peers.planer", "3 faults"],
    );
}

#[test]
fn a_missing_file_is_named() {
    refused(
        &planner(Path::new("does-not-exist.toml"), &[]),
        &["does-not-exist.toml"],
    );
    let setup = Setup::new();
    fs::remove_file(setup.path("planner.key")).unwrap();
    refused(&setup.run(""), &["tls.key", "planner.key"]);
}

#[test]
fn an_invalid_database_url_is_named() {
    let setup = Setup::new();
    let config = setup.write("");
    let url = [("SERVO_DATABASE__URL", "mysql://127.0.0.1/servo")];
    refused(&planner(&config, &url), &["database.url", "postgres://"]);
}

#[test]
fn a_wrong_certificate_is_reported_before_a_port_opens() {
    let setup = Setup::new();
    setup.certificate(&Issue::identity(&Service::Scheduler.spiffe_id()));
    refused(
        &setup.run(""),
        &["tls.certificate", "spiffe://servo/scheduler"],
    );
    setup.certificate(&Issue::identity(&Service::Planner.spiffe_id()).expired());
    refused(&setup.run(""), &["tls.certificate", "expired"]);
    setup.certificate(&Issue::without_identity());
    refused(&setup.run(""), &["tls.certificate"]);
    fs::write(setup.path("ca.crt"), "no PEM at all").unwrap();
    refused(&setup.run(""), &["tls.ca"]);
}

/// The response of the readiness endpoint of a service.
fn readyz(port: u16) -> String {
    let mut answer = String::new();
    if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
        let _ = stream
            .write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let _ = stream.read_to_string(&mut answer);
    }
    answer
}

#[test]
fn an_unreachable_postgres_is_waited_for_with_a_visible_reason() {
    let setup = Setup::new();
    let (listen, probe) = (free_port().unwrap(), free_port().unwrap());
    let ports =
        format!("[server]\nlisten = '127.0.0.1:{listen}'\nmetrics_listen = '127.0.0.1:{probe}'");
    let mut command = Child::command(&binaries().join("servo-planner"));
    command
        .env("SERVO_CONFIG", setup.write(&ports))
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let mut planner = Child::spawn("planner", command).unwrap();
    let mut response = String::new();
    until_true_blocking("the readiness endpoint to name Postgres", || {
        assert!(
            planner.try_wait().unwrap().is_none(),
            "the planner must wait, not end"
        );
        response = readyz(probe);
        response.contains("Postgres at database.url cannot be reached")
    });
    assert!(response.starts_with("HTTP/1.1 503"), "{response}");
    assert!(
        planner
            .stop(Signal::SIGTERM, Duration::from_secs(30))
            .unwrap()
            .success()
    );
}
