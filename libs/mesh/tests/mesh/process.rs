//! A whole process, from its configuration to its exit code. The child is this test binary, which
//! environment variables turn into a service.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use nix::sys::signal::Signal;
use servo_local::{Child, Issue, free_port};
use servo_mesh::{Exposure, Fault, Mesh, NoSections, Peer, continue_trace};
use servo_model::Service;
use tokio::net::{TcpListener, TcpStream};
use tonic::Code;
use tracing::{Instrument, debug_span, info_span};

use crate::support::{MAKE_PLANS, TEST_TIMEOUT, World, code_of, handler, ok, request, until};

/// Names a file: the child serves, and answers calls once the file exists.
const RELEASE: &str = "MESH_TEST_RELEASE";
const ARRIVED: &str = "a call arrived";

/// Not a test: does nothing unless the variable is set.
#[test]
fn child() {
    if std::env::var_os(RELEASE).is_none() {
        return;
    }
    let code = servo_mesh::run(Service::Planner, |mesh| Box::pin(serve_blocked(mesh)));
    std::process::exit(
        (0..=2)
            .find(|n| ExitCode::from(*n) == code)
            .map_or(99, i32::from),
    );
}

async fn serve_blocked(mesh: Mesh<NoSections>) -> Result<(), Fault> {
    let released = PathBuf::from(std::env::var_os(RELEASE).unwrap());
    let blocked = handler(move |_| {
        let released = released.clone();
        let answer = async move {
            eprintln!("{ARRIVED}");
            while !released.exists() {
                tokio::task::yield_now().await;
            }
            create_span_of_another_trace();
            ok()
        };
        answer.instrument(info_span!(
            "servo.plan_run",
            tenant_id = "acme",
            trigger_type = "manual"
        ))
    });
    mesh.serving(Exposure::Mesh)
        .with_fallback(blocked)
        .until_signal()
        .await
}

/// Creates a span that belongs to another trace.
fn create_span_of_another_trace() {
    let span = debug_span!("servo.dispatch_task", task_id = %"t1", attempt = 2);
    continue_trace(
        &span,
        "00-11111111111111111111111111111111-2222222222222222-01",
    );
    let _unnamed = span.in_scope(|| info_span!("unnamed"));
}

pub(crate) struct Process {
    pub(crate) world: World,
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) metrics: SocketAddr,
}

impl Process {
    /// Starts a planner as a separate process; `variables` are added to a valid configuration.
    pub(crate) fn start(world: World, variables: &[(&str, &str)]) -> Process {
        world.issue("planner", &Issue::identity("spiffe://servo/planner"));
        let [address, metrics] =
            [0; 2].map(|_| SocketAddr::from(([127, 0, 0, 1], free_port().unwrap())));
        let mut command = Child::command(&std::env::current_exe().unwrap());
        command
            .args(["process::child", "--exact", "--nocapture"])
            .env(RELEASE, world.path("release"))
            .env("SERVO_SERVER__LISTEN", address.to_string())
            .env("SERVO_SERVER__METRICS_LISTEN", metrics.to_string())
            .env("SERVO_TLS__CERTIFICATE", world.path("planner.crt"))
            .env("SERVO_TLS__KEY", world.path("planner.key"))
            .env("SERVO_TLS__CA", world.path("ca.crt"))
            .envs(variables.iter().copied())
            .stderr(File::create(world.path("stderr")).unwrap())
            .stdout(File::create(world.path("stdout")).unwrap());
        let child = Child::spawn("planner", command).unwrap();
        Process {
            world,
            child,
            address,
            metrics,
        }
    }

    pub(crate) fn stderr(&self) -> String {
        std::fs::read_to_string(self.world.path("stderr")).unwrap()
    }

    pub(crate) fn peer(&self) -> Peer {
        self.world
            .peer(Service::Scheduler, Service::Planner, self.address)
    }

    /// Waits until the process accepts connections; fails if it ended.
    pub(crate) async fn is_up(&mut self) {
        until(async || {
            assert!(
                self.child.try_wait().unwrap().is_none(),
                "{}",
                self.stderr()
            );
            TcpStream::connect(self.address).await.is_ok()
        })
        .await;
    }

    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.child
            .wait_for(TEST_TIMEOUT)
            .unwrap()
            .expect("it does not end")
            .code()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_lets_a_call_finish_and_exits_with_0() {
    let mut process = Process::start(World::new(), &[("SERVO_SERVER__GRACE", "60m")]);
    process.is_up().await;
    let call = tokio::spawn(code_of(process.peer(), request(MAKE_PLANS)));
    until(async || process.stderr().contains(ARRIVED)).await;
    process.child.signal(Signal::SIGTERM).unwrap();
    until(async || TcpStream::connect(process.address).await.is_err()).await;
    std::fs::write(process.world.path("release"), "").unwrap();
    assert_eq!(call.await.unwrap(), Code::Ok);
    assert_eq!(process.exit_code(), Some(0), "{}", process.stderr());
}

#[tokio::test(flavor = "multi_thread")]
async fn second_signal_does_not_wait() {
    let mut process = Process::start(World::new(), &[("SERVO_SERVER__GRACE", "60m")]);
    process.is_up().await;
    let call = tokio::spawn(code_of(process.peer(), request(MAKE_PLANS)));
    until(async || process.stderr().contains(ARRIVED)).await;
    process.child.signal(Signal::SIGINT).unwrap();
    until(async || TcpStream::connect(process.address).await.is_err()).await;
    process.child.signal(Signal::SIGINT).unwrap();
    assert_eq!(process.exit_code(), Some(0), "{}", process.stderr());
    assert_ne!(call.await.unwrap(), Code::Ok);
}

#[tokio::test(flavor = "multi_thread")]
async fn busy_port_is_a_runtime_fault() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut process = Process::start(
        World::new(),
        &[(
            "SERVO_SERVER__LISTEN",
            taken.local_addr().unwrap().to_string().as_str(),
        )],
    );
    assert_eq!(process.exit_code(), Some(1));
    let stderr = process.stderr();
    let expected = format!("servo-planner: port {port} on 127.0.0.1 is in use: set server.listen");
    assert!(stderr.lines().any(|line| line == expected), "{stderr}");
}

#[test]
fn wrong_configuration_is_reported_completely_before_anything_starts() {
    let wrong = [
        ("SERVO_SERVER__GRACE", "soon"),
        ("SERVO_TLS__CA", "/nowhere/ca.crt"),
        ("SERVO_TELEMETRY__FROMAT", "x"),
    ];
    let mut process = Process::start(World::new(), &wrong);
    assert_eq!(process.exit_code(), Some(2));
    let expected = "servo-planner: the configuration has 3 faults:\n  \
        server.grace: found `soon` (environment variable SERVO_SERVER__GRACE), but a duration, a whole number with ms, s, m \
        or h, such as `250ms` or `5s`, is allowed\n  \
        telemetry.fromat: unknown key (environment variable SERVO_TELEMETRY__FROMAT); did you mean `format`?\n  \
        tls.ca: the file /nowhere/ca.crt cannot be read: No such file or directory (os error 2)\n";
    assert_eq!(process.stderr(), expected);
    let mut process = Process::start(World::new(), &wrong[1..2]);
    assert_eq!(process.exit_code(), Some(2));
    assert_eq!(
        process.stderr(),
        "servo-planner: the configuration is wrong: tls.ca: the file /nowhere/ca.crt cannot be read: No such file or \
         directory (os error 2)\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_json_with_the_trace_and_without_secrets() {
    let mut process = Process::start(World::new(), &[]);
    process.is_up().await;
    std::fs::write(process.world.path("release"), "").unwrap();
    process
        .world
        .issue("quota", &Issue::identity("spiffe://servo/quota"));
    let mut refused = request(MAKE_PLANS);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    refused.headers_mut().insert(
        "traceparent",
        format!("00-{trace}-b7ad6b7169203331-01").parse().unwrap(),
    );
    refused
        .headers_mut()
        .insert("authorization", "Bearer hunter2".parse().unwrap());
    let raw_client = process.world.raw_client(Some("quota"), process.address);
    assert_eq!(code_of(raw_client, refused).await, Code::PermissionDenied);
    until(async || process.stderr().contains("call refused")).await;
    let log = process.stderr();
    let line = log
        .lines()
        .find(|line| line.contains("call refused"))
        .unwrap();
    for part in [
        r#""level":"INFO""#,
        r#""code":"PERMISSION_DENIED""#,
        &format!(r#""trace_id":"{trace}""#),
        &format!(r#""method":"{MAKE_PLANS}""#),
        r#""peer":"spiffe://servo/quota""#,
        r#""service":"planner""#,
    ] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert!(!log.contains("hunter2"));
    process.child.signal(Signal::SIGTERM).unwrap();
    assert_eq!(process.exit_code(), Some(0), "{}", process.stderr());
}
