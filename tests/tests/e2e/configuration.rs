//! Wrong configuration ends in one clear sentence and a non-zero exit, or in waiting with a visible reason.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use servo_local::{Ca, Child, Issue, free_port};
use servo_model::Service;
use tempfile::TempDir;

use crate::support::binaries;

/// A folder with good certificates of the planner, to spoil one thing at a time.
struct Ground {
    dir: TempDir,
    ca: Ca,
}

impl Ground {
    fn new() -> Ground {
        let ground = Ground {
            dir: TempDir::new().unwrap(),
            ca: Ca::new().unwrap(),
        };
        fs::write(ground.path("ca.crt"), ground.ca.certificate()).unwrap();
        ground.certificate(&Issue::identity(&Service::Planner.spiffe_id()));
        ground
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

    /// Runs the planner with the good configuration and these lines after it, which must make it refuse.
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

/// It must refuse at once, with exit code 2, and name all of `words`.
#[track_caller]
fn refused(output: &Output, words: &[&str]) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    for word in words {
        assert!(told.contains(word), "`{word}` is missing in: {told}");
    }
    assert!(!told.contains("panicked"), "{told}");
}

#[test]
fn an_unknown_key_is_named_with_its_likely_meaning() {
    refused(
        &Ground::new().run("[server]\nlisten_adress = '127.0.0.1:0'"),
        &["server.listen_adress", "planner.toml"],
    );
    refused(
        &Ground::new().run("[server]\nlistn = '127.0.0.1:0'"),
        &["server.listn", "did you mean `listen`"],
    );
}

#[test]
fn a_wrong_value_is_named_with_what_is_allowed() {
    refused(
        &Ground::new().run("[server]\nlisten = 'nowhere'"),
        &["server.listen", "nowhere"],
    );
    refused(
        &Ground::new().run("[server]\ngrace = 'soon'"),
        &["server.grace", "soon"],
    );
}

#[test]
fn all_faults_are_told_at_once() {
    let output =
        Ground::new().run("[server]\ngrace = 'soon'\nlistn = 'x'\n[peers]\nplaner = 'nowhere'");
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
    let ground = Ground::new();
    fs::remove_file(ground.path("planner.key")).unwrap();
    refused(&ground.run(""), &["tls.key", "planner.key"]);
}

#[test]
fn a_bad_database_url_is_named() {
    let ground = Ground::new();
    let config = ground.write("");
    let url = [("SERVO_DATABASE__URL", "mysql://127.0.0.1/servo")];
    refused(&planner(&config, &url), &["database.url", "postgres://"]);
}

#[test]
fn a_wrong_certificate_is_told_before_a_port_opens() {
    let ground = Ground::new();
    ground.certificate(&Issue::identity(&Service::Scheduler.spiffe_id()));
    refused(
        &ground.run(""),
        &["tls.certificate", "spiffe://servo/scheduler"],
    );
    ground.certificate(&Issue::identity(&Service::Planner.spiffe_id()).expired());
    refused(&ground.run(""), &["tls.certificate", "expired"]);
    ground.certificate(&Issue::nameless());
    refused(&ground.run(""), &["tls.certificate"]);
    fs::write(ground.path("ca.crt"), "no PEM at all").unwrap();
    refused(&ground.run(""), &["tls.ca"]);
}

/// What the probe of a running service answers.
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
    let ground = Ground::new();
    let (listen, probe) = (free_port().unwrap(), free_port().unwrap());
    let ports =
        format!("[server]\nlisten = '127.0.0.1:{listen}'\nmetrics_listen = '127.0.0.1:{probe}'");
    let mut command = Child::command(&binaries().join("servo-planner"));
    command
        .env("SERVO_CONFIG", ground.write(&ports))
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let mut planner = Child::spawn("planner", command).unwrap();
    let reason = loop {
        assert!(
            planner.try_wait().unwrap().is_none(),
            "it must wait, not end"
        );
        let answer = readyz(probe);
        if answer.contains("Postgres at database.url cannot be reached") {
            break answer;
        }
    };
    assert!(reason.starts_with("HTTP/1.1 503"), "{reason}");
    assert!(
        planner
            .stop(Signal::SIGTERM, Duration::from_secs(30))
            .unwrap()
            .success()
    );
}
