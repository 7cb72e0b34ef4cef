//! Reports of workers: over plain HTTPS and gRPC, committed outputs, logs, and heartbeats during
//! outages.

use std::time::{Duration, Instant};

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use servo_client::api;
use servo_client::worker::{Attempt, AttemptOutcome, Handler, Worker, WorkerConfig};
use servo_local::wait::until_true;
use servo_local::{LivenessTimings, MeshInfo};
use servo_model::Service;
use servo_tests::full;
use servo_tests::manifest::{asset, manifest, with_short_timeouts};
use servo_tests::user::{User, WORKSPACE};
use servo_tests::worker::forge;
use sqlx::{Connection, PgConnection};
use tokio::sync::{mpsc, watch};
use tonic::body::Body;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tower::{Service as _, ServiceExt};

use crate::support::{Running, metrics};

/// Passes its envelopes to the test, which reports for them.
struct ByHand(mpsc::UnboundedSender<api::TaskEnvelope>);

impl Handler for ByHand {
    async fn run(&self, attempt: Attempt) -> AttemptOutcome {
        attempt.disable_heartbeats();
        self.0.send(attempt.envelope().clone()).unwrap();
        std::future::pending().await
    }
}

fn work_by_hand(user: &User) -> mpsc::UnboundedReceiver<api::TaskEnvelope> {
    let (envelopes, received) = mpsc::unbounded_channel();
    let handlers = vec!["noop".to_owned()];
    let info = api::WorkerInfo {
        name: "by hand".into(),
        slots: 4,
        handlers,
        ..Default::default()
    };
    let config = WorkerConfig::new(user.tenant(), info);
    tokio::spawn(
        Worker::new(
            user.client.clone(),
            user.client.clone(),
            config,
            ByHand(envelopes),
        )
        .run(),
    );
    received
}

/// A client of the callback over HTTPS, without a certificate.
struct HttpClient {
    channel: Channel,
    base: String,
}

impl HttpClient {
    fn of(mesh: &MeshInfo) -> HttpClient {
        let base = mesh.http_address(Service::Callback);
        let ca = Certificate::from_pem(std::fs::read_to_string(mesh.ca_path()).unwrap());
        let tls = ClientTlsConfig::new().ca_certificate(ca);
        let endpoint = Endpoint::from_shared(base.clone()).unwrap();
        HttpClient {
            channel: endpoint.tls_config(tls).unwrap().connect_lazy(),
            base,
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        media: &str,
        body: String,
    ) -> (StatusCode, Value) {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base));
        self.call(
            request
                .header("content-type", media)
                .body(Body::new(Full::from(body)))
                .unwrap(),
        )
        .await
    }

    /// Posts to an expired path together with the path of the outcome of the attempt.
    async fn post_renewing(&self, path: &str, renewal: &str, body: Value) -> (StatusCode, Value) {
        let request = Request::post(format!("{}{path}", self.base))
            .header("content-type", "application/json");
        let request = request.header("servo-presigned-renewal", renewal);
        self.call(
            request
                .body(Body::new(Full::from(body.to_string())))
                .unwrap(),
        )
        .await
    }

    async fn call(&self, request: Request<Body>) -> (StatusCode, Value) {
        let mut channel = self.channel.clone();
        let response = channel.ready().await.unwrap().call(request).await.unwrap();
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.send(Method::POST, path, "application/json", body.to_string())
            .await
    }

    /// Asserts that the call is refused with this status and reason; returns the response.
    async fn refused(&self, path: &str, body: &str, status: StatusCode, reason: &str) -> Value {
        let (answered, response) = self
            .send(Method::POST, path, "application/json", body.to_owned())
            .await;
        assert_eq!(
            (answered, response["reason"].as_str()),
            (status, Some(reason)),
            "{response}"
        );
        response
    }
}

fn tail(user: &User, run_id: &str) -> api::TailLogsRequest {
    api::TailLogsRequest {
        tenant: user.tenant().into(),
        workspace: WORKSPACE.into(),
        run_id: run_id.into(),
        ..Default::default()
    }
}

/// Reads the stream to its end; returns the lines and the last resume token.
async fn read_logs(user: &User, request: api::TailLogsRequest) -> (Vec<api::LogLine>, String) {
    let mut stream = user
        .client
        .callback()
        .tail_logs(request)
        .await
        .unwrap()
        .into_inner();
    let (mut lines, mut token, mut caught_up) = (Vec::new(), String::new(), false);
    while let Some(message) = stream.message().await.unwrap() {
        lines.extend(message.lines);
        token = message.resume_token;
        caught_up = message.caught_up;
    }
    assert!(caught_up, "a stream that ends has sent all lines");
    (lines, token)
}

fn texts(lines: &[api::LogLine]) -> Vec<&str> {
    lines.iter().map(|line| line.text.as_str()).collect()
}

#[tokio::test]
async fn an_attempt_is_reported_over_https_alone_and_its_log_is_followed() {
    let running = Running::shared().await;
    let user = running.user();
    let mut envelopes = work_by_hand(&user);
    user.deploy(manifest(vec![
        asset("web/a", &[], ""),
        asset("web/b", &["web/a"], ""),
    ]))
    .await
    .unwrap();
    let run = user.trigger(&["web.*"]).await.unwrap();
    let web = HttpClient::of(&running.mesh);
    let follow = api::TailLogsRequest {
        follow: true,
        ..tail(&user, &run.run_id)
    };
    let followed = tokio::spawn({
        let user = user.clone();
        async move { read_logs(&user, follow).await }
    });
    let mut task_ids = Vec::new();
    for name in ["first", "second"] {
        let envelope = envelopes.recv().await.unwrap();
        let paths = envelope.callbacks.clone().unwrap();
        let task = json!({"ordinal": envelope.task.unwrap().ordinal});
        let start = json!({"task": task, "session": "by-hand", "mode": "DISPATCH_MODE_PULL"});
        let (status, started) = web.post(&paths.start, start).await;
        assert_eq!(
            (status, &started["acceptance"]),
            (StatusCode::OK, &json!("ACCEPTANCE_FOLDED")),
            "{started}"
        );
        let (status, beat) = web
            .post(
                &paths.heartbeat,
                json!({"task": task, "session": "by-hand"}),
            )
            .await;
        assert_eq!(status, StatusCode::OK, "{beat}");
        let renewed = beat["renewed"]["logs"].as_str().unwrap();
        let line =
            |text: &str, level: &str| json!({"text": format!("{name} {text}"), "level": level});
        let lines = json!({
            "session": "by-hand",
            "sequence": "1",
            "lines": [line("quiet", "LOG_LEVEL_DEBUG"), line("loud", "LOG_LEVEL_ERROR")],
        });
        for _ in 0..2 {
            let (status, stored) = web.post(renewed, lines.clone()).await;
            assert_eq!(status, StatusCode::OK, "{stored}");
        }
        let finish = json!({"task": task, "session": "by-hand", "outcome": "OUTCOME_SUCCEEDED"});
        let (status, finished) = web.post(&paths.finished, finish.clone()).await;
        assert_eq!(
            (status, &finished["acceptance"]),
            (StatusCode::OK, &json!("ACCEPTANCE_FOLDED")),
            "{finished}"
        );
        let (_, again) = web.post(&paths.finished, finish).await;
        assert_eq!(again["acceptance"], "ACCEPTANCE_DUPLICATE");
        let error = json!({"message": "no", "category": "ERROR_CATEGORY_USER_CODE"});
        let other = json!({"task": task, "session": "by-hand", "outcome": "OUTCOME_FAILED", "error": error});
        let (_, conflict) = web.post(&paths.finished, other).await;
        assert_eq!(conflict["reason"], "OUTCOME_CONFLICT", "{conflict}");
        task_ids.push(envelope.task_id);
    }
    assert_eq!(
        user.wait_for_end(&run.run_id).await.unwrap().state(),
        api::RunState::Succeeded
    );
    let all = ["first quiet", "first loud", "second quiet", "second loud"];
    let (lines, _) = followed.await.unwrap();
    assert_eq!(
        texts(&lines),
        all,
        "lines that were sent twice are stored once"
    );
    assert_eq!(
        (&lines[0].task_id, &lines[3].task_id),
        (&task_ids[0], &task_ids[1])
    );
    let (lines, token) = read_logs(&user, tail(&user, &run.run_id)).await;
    assert_eq!(texts(&lines), all);
    let (none, _) = read_logs(
        &user,
        api::TailLogsRequest {
            resume_token: token,
            ..tail(&user, &run.run_id)
        },
    )
    .await;
    assert_eq!(texts(&none), Vec::<&str>::new());
    let (last, _) = read_logs(
        &user,
        api::TailLogsRequest {
            last_lines: 3,
            ..tail(&user, &run.run_id)
        },
    )
    .await;
    assert_eq!(texts(&last), all[1..]);
    let error = api::LogLevel::Error.into();
    let (loud, _) = read_logs(
        &user,
        api::TailLogsRequest {
            min_level: error,
            ..tail(&user, &run.run_id)
        },
    )
    .await;
    assert_eq!(texts(&loud), ["first loud", "second loud"]);
    let of_task = api::TailLogsRequest {
        task_id: task_ids[1].clone(),
        ..tail(&user, &run.run_id)
    };
    assert_eq!(texts(&read_logs(&user, of_task).await.0), all[2..]);
    let page = metrics(&running.mesh, Service::Callback).await;
    let of_tenant = format!("tenant_id=\"{}\"", user.tenant());
    let series = format!("servo_callback_log_lines_total{{{of_tenant}}} 8");
    assert!(page.contains(&series), "{series} in {page}");
}

#[tokio::test]
async fn invalid_calls_over_https_and_of_tail_logs_get_precise_errors() {
    let running = Running::shared().await;
    let user = running.user();
    let mut envelopes = work_by_hand(&user);
    user.deploy(manifest(vec![asset("web/a", &[], "")]))
        .await
        .unwrap();
    let run = user.trigger(&["web.a"]).await.unwrap();
    let web = HttpClient::of(&running.mesh);
    let envelope = envelopes.recv().await.unwrap();
    let paths = envelope.callbacks.clone().unwrap();
    let (bad, unknown) = (StatusCode::BAD_REQUEST, StatusCode::UNAUTHORIZED);
    for (body, word) in [
        ("{", "EOF"),
        ("[]", "line 1"),
        (r#"{"outcme": 1}"#, "outcme"),
        (r#"{"outcome": "GOOD"}"#, "GOOD"),
        ("{}", "outcome"),
    ] {
        let response = web
            .refused(&paths.finished, body, bad, "INVALID_FIELD")
            .await;
        let detail = response["detail"].as_str().unwrap();
        assert!(detail.contains(word), "{response}");
    }
    let forged = forge(&paths.finished);
    web.refused(&forged, "{}", unknown, "SIGNATURE_INVALID")
        .await;
    let other_verb = paths.finished.replace("/finished?", "/start?");
    web.refused(&other_verb, "{}", unknown, "SIGNATURE_INVALID")
        .await;
    let plain = paths.finished.split('?').next().unwrap();
    web.refused(plain, "{}", unknown, "SIGNATURE_INVALID").await;
    let foreign = r#"{"tenant": "other", "outcome": "OUTCOME_SUCCEEDED"}"#;
    web.refused(&paths.finished, foreign, unknown, "SIGNATURE_INVALID")
        .await;
    let large = " ".repeat(5 << 20);
    web.refused(
        &paths.logs,
        &large,
        StatusCode::PAYLOAD_TOO_LARGE,
        "MESSAGE_TOO_LARGE",
    )
    .await;
    let json = "application/json";
    let (status, _) = web
        .send(Method::GET, &paths.start, json, String::new())
        .await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    let (status, _) = web
        .send(Method::POST, &paths.start, "text/plain", "{}".into())
        .await;
    assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let (status, _) = web
        .send(Method::POST, "/v1/tenants/demo", json, "{}".into())
        .await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let tasks = user.tasks(&run.run_id).await.unwrap();
    assert_eq!(
        tasks[0].state(),
        api::TaskState::Queued,
        "none of the calls counts"
    );
    let mut callback = user.client.callback();
    let absent = format!("run_{}", "a".repeat(26));
    let absent_task = format!("task_{}", "a".repeat(26));
    for (request, code) in [
        (tail(&user, &absent), tonic::Code::NotFound),
        (tail(&user, "x"), tonic::Code::InvalidArgument),
        (
            api::TailLogsRequest {
                task_id: absent_task,
                ..tail(&user, &run.run_id)
            },
            tonic::Code::NotFound,
        ),
        (
            api::TailLogsRequest {
                resume_token: "AAAA".into(),
                ..tail(&user, &run.run_id)
            },
            tonic::Code::OutOfRange,
        ),
        (
            api::TailLogsRequest {
                workspace: "other".into(),
                ..tail(&user, &run.run_id)
            },
            tonic::Code::NotFound,
        ),
    ] {
        let refused = callback
            .tail_logs(request.clone())
            .await
            .err()
            .map(|status| status.code());
        assert_eq!(refused, Some(code), "{request:?}");
    }
}

#[tokio::test]
async fn only_committed_outputs_count() {
    let running = Running::shared().await;
    let user = running.user();
    let _worker = user.start_worker(5);
    let once = api::RetryPolicy {
        max_attempts: 1,
        ..Default::default()
    };
    let outputs = ["good", "missing", "wrong", "foreign", "elsewhere"].map(|marker| {
        let config = format!(r#"{{"do":"commit","marker":"{marker}"}}"#);
        let retry = Some(once.clone());
        api::AssetDefinition {
            retry,
            ..asset(&format!("out/{marker}"), &[], &config)
        }
    });
    user.deploy(manifest(outputs.into())).await.unwrap();
    let run = user.trigger(&["out.*"]).await.unwrap();
    assert_eq!(
        user.wait_for_end(&run.run_id).await.unwrap().state(),
        api::RunState::Failed
    );
    let tasks = user.tasks(&run.run_id).await.unwrap();
    let state_and_error = |name: &str| {
        let task = tasks
            .iter()
            .find(|task| task.asset_key == format!("out/{name}"))
            .unwrap();
        let error = task
            .error
            .as_ref()
            .map(|error| error.message.clone())
            .unwrap_or_default();
        (task.state(), error)
    };
    assert_eq!(
        state_and_error("good"),
        (api::TaskState::Succeeded, String::new())
    );
    for (name, words) in [
        ("missing", ["outputs[0].uri", "there is no commit marker"]),
        ("wrong", ["outputs[0].commit_digest", "sha256"]),
        (
            "foreign",
            ["outputs[0].uri", "has materialization_id another"],
        ),
        (
            "elsewhere",
            ["outputs[0].uri", "outside the attempt's folder"],
        ),
    ] {
        let (state, error) = state_and_error(name);
        assert_eq!(state, api::TaskState::Failed, "{name}");
        assert!(
            words.iter().all(|word| error.contains(word)),
            "{name}: {error}"
        );
    }
    let mut admin = PgConnection::connect(running.mesh.admin_url())
        .await
        .unwrap();
    let select = "SELECT asset_key, state FROM scheduler.materializations WHERE tenant = $1";
    let promoted: Vec<(String, i16)> = sqlx::query_as(select)
        .bind(user.tenant())
        .fetch_all(&mut admin)
        .await
        .unwrap();
    assert_eq!(promoted, [("out/good".to_owned(), 3)]);
}

/// Whether the signatures of heartbeats expire during an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signatures {
    StayValid,
    Expire,
}

/// How long an outage lasts, and how fast losses are noticed. The short form proves the same as the
/// full one with smaller settings.
#[derive(Debug, Clone, Copy)]
struct OutagePace {
    timings: LivenessTimings,
    heartbeat_timeout: Duration,
    /// More than twice the heartbeat timeout, and longer than a short signature is valid: the
    /// heartbeat timeout, three times the grace, and a second for rounding.
    outage: Duration,
}

impl OutagePace {
    fn new(signatures: Signatures) -> OutagePace {
        let (heartbeat, grace) = if full() {
            (Duration::from_secs(1), Duration::from_secs(1))
        } else {
            (Duration::from_millis(300), Duration::from_millis(200))
        };
        let timings = LivenessTimings {
            heartbeat,
            signature_grace: (signatures == Signatures::Expire).then_some(grace),
            ..LivenessTimings::FAST
        };
        let heartbeat_timeout = Duration::from_secs(if full() { 4 } else { 2 });
        OutagePace {
            timings,
            heartbeat_timeout,
            outage: heartbeat_timeout * 9 / 4,
        }
    }
}

/// Succeeds when the test allows it, and sends heartbeats until then.
struct Released(watch::Receiver<bool>);

impl Handler for Released {
    async fn run(&self, _: Attempt) -> AttemptOutcome {
        self.0.clone().wait_for(|released| *released).await.unwrap();
        AttemptOutcome::succeeded()
    }
}

fn work_until_released(user: &User) -> watch::Sender<bool> {
    let (release, released) = watch::channel(false);
    let info = api::WorkerInfo {
        name: "released".into(),
        slots: 2,
        handlers: vec!["noop".to_owned()],
        ..Default::default()
    };
    let config = WorkerConfig::new(user.tenant(), info);
    let client = user.client.clone();
    tokio::spawn(Worker::new(client.clone(), client, config, Released(released)).run());
    release
}

/// Waits for a heartbeat that is stored later than `after`.
async fn wait_for_heartbeat(running: &Running, after: Instant) {
    let mut admin = PgConnection::connect(running.mesh.admin_url())
        .await
        .unwrap();
    // The age by the database's clock, because times of two clocks cannot be compared.
    let age = "SELECT extract(epoch FROM clock_timestamp() - max(beat_at))::float8 \
               FROM callback.heartbeats";
    until_true("a heartbeat to be stored", async || {
        let age: Option<f64> = sqlx::query_scalar(age).fetch_one(&mut admin).await.unwrap();
        age.is_some_and(|age| age < after.elapsed().as_secs_f64())
    })
    .await;
}

/// Harms a service while an attempt runs, heals it after more than twice the heartbeat timeout, and
/// asserts that the attempt survives.
///
/// The attempt ends only after it has sent heartbeats for a whole heartbeat timeout after the
/// outage, so its outcome does not come in time to save it.
async fn assert_attempt_survives(
    signatures: Signatures,
    harm: impl FnOnce(&mut Running),
    heal: impl FnOnce(&mut Running),
) {
    let pace = OutagePace::new(signatures);
    let mut running = Running::start_with(|options| options.timings(pace.timings)).await;
    let user = User::of(&running.mesh).unwrap();
    let release = work_until_released(&user);
    let mut waiting = with_short_timeouts(asset("long/a", &[], ""));
    waiting.timeouts.as_mut().unwrap().heartbeat = Some(pace.heartbeat_timeout.try_into().unwrap());
    user.deploy(manifest(vec![waiting])).await.unwrap();
    let began = Instant::now();
    let run = user.trigger(&["long.a"]).await.unwrap();
    wait_for_heartbeat(&running, began).await;
    harm(&mut running);
    tokio::time::sleep(pace.outage).await;
    heal(&mut running);
    // Fails with the last log line of a process that ended, instead of waiting for it.
    running.mesh.wait_until_healthy().await.unwrap();
    let healed = Instant::now();
    wait_for_heartbeat(&running, healed).await;
    wait_for_heartbeat(&running, healed + pace.heartbeat_timeout).await;
    release.send(true).unwrap();
    let ended = user.wait_for_end(&run.run_id).await.unwrap();
    assert_eq!(ended.state(), api::RunState::Succeeded, "{ended:?}");
    let tasks = user.tasks(&run.run_id).await.unwrap();
    assert_eq!((tasks[0].attempt, tasks[0].failures), (1, 0), "{tasks:?}");
}

fn signal(service: Service, signal: Signal) -> impl FnOnce(&mut Running) {
    move |running| {
        running
            .mesh
            .process(service)
            .unwrap()
            .signal(signal)
            .unwrap()
    }
}

async fn assert_attempt_survives_a_stopped_callback(signatures: Signatures) {
    let stop = signal(Service::Callback, Signal::SIGSTOP);
    let resume = signal(Service::Callback, Signal::SIGCONT);
    assert_attempt_survives(signatures, stop, resume).await;
}

async fn assert_attempt_survives_a_killed_callback(signatures: Signatures) {
    let kill = |running: &mut Running| running.mesh.kill_9(Service::Callback).unwrap();
    let restart = |running: &mut Running| running.mesh.launch(Service::Callback).unwrap();
    assert_attempt_survives(signatures, kill, restart).await;
}

#[tokio::test]
async fn f04_an_attempt_survives_a_stopped_callback() {
    assert_attempt_survives_a_stopped_callback(Signatures::StayValid).await;
}

#[tokio::test]
async fn f04_an_attempt_survives_a_killed_callback() {
    assert_attempt_survives_a_killed_callback(Signatures::StayValid).await;
}

/// When the scheduler continues, every timer is long overdue although every attempt is alive.
#[tokio::test]
async fn f04_an_attempt_survives_a_stopped_scheduler() {
    let stop = signal(Service::Scheduler, Signal::SIGSTOP);
    let resume = signal(Service::Scheduler, Signal::SIGCONT);
    assert_attempt_survives(Signatures::StayValid, stop, resume).await;
}

#[tokio::test]
async fn f14_an_attempt_survives_a_callback_that_is_stopped_until_signatures_expire() {
    assert_attempt_survives_a_stopped_callback(Signatures::Expire).await;
}

#[tokio::test]
async fn f14_an_attempt_survives_a_callback_that_is_dead_until_signatures_expire() {
    assert_attempt_survives_a_killed_callback(Signatures::Expire).await;
}

/// The time of the last stored heartbeat, in seconds of the database's clock.
async fn last_heartbeat(mesh: &MeshInfo, tenant: &str) -> Option<f64> {
    let mut admin = PgConnection::connect(mesh.admin_url()).await.unwrap();
    let select = "SELECT extract(epoch FROM max(beat_at))::float8 \
                  FROM callback.heartbeats WHERE tenant = $1";
    let (at,): (Option<f64>,) = sqlx::query_as(select)
        .bind(tenant)
        .fetch_one(&mut admin)
        .await
        .unwrap();
    at
}

/// Sends heartbeats until the path is refused as expired.
async fn wait_until_expired(web: &HttpClient, path: &str, heartbeat: &Value) {
    until_true("the signature of the path to expire", async || {
        let (status, response) = web.post(path, heartbeat.clone()).await;
        let is_expired = status == StatusCode::UNAUTHORIZED;
        if is_expired {
            assert_eq!(response["reason"], "SIGNATURE_EXPIRED", "{response}");
        } else {
            assert_eq!(status, StatusCode::OK, "{response}");
        }
        is_expired
    })
    .await;
}

#[tokio::test]
async fn f15_an_expired_path_is_accepted_only_with_the_outcome_path_of_its_attempt() {
    let timings = OutagePace::new(Signatures::Expire).timings;
    let running = Running::start_with(|options| options.timings(timings)).await;
    let user = User::of(&running.mesh).unwrap();
    let mut envelopes = work_by_hand(&user);
    user.deploy(manifest(vec![
        asset("web/a", &[], ""),
        asset("web/b", &[], ""),
    ]))
    .await
    .unwrap();
    let run = user.trigger(&["web.*"]).await.unwrap();
    let web = HttpClient::of(&running.mesh);
    let (one, other) = (
        envelopes.recv().await.unwrap(),
        envelopes.recv().await.unwrap(),
    );
    let (paths, foreign) = (
        one.callbacks.clone().unwrap(),
        other.callbacks.unwrap().finished,
    );
    let task = json!({"ordinal": one.task.unwrap().ordinal});
    let start = json!({"task": task, "session": "by-hand", "mode": "DISPATCH_MODE_PULL"});
    assert_eq!(web.post(&paths.start, start).await.0, StatusCode::OK);
    // A shorter timeout than that of the asset, so that the attempt is not lost while its
    // signatures expire.
    let beat = json!({"task": task, "session": "by-hand", "heartbeatTimeout": "1s"});
    let (_, response) = web.post(&paths.heartbeat, beat.clone()).await;
    let renewed = |verb: &str| response["renewed"][verb].as_str().unwrap().to_owned();
    let (beats, logs, outcome) = (renewed("heartbeat"), renewed("logs"), paths.finished);
    wait_until_expired(&web, &beats, &beat).await;
    let last = last_heartbeat(&running.mesh, user.tenant()).await;
    let lines =
        |text: &str| json!({"session": "by-hand", "sequence": "1", "lines": [{"text": text}]});
    for (path, renewal, reason) in [
        (&beats, "", "SIGNATURE_EXPIRED"),
        (&logs, "", "SIGNATURE_EXPIRED"),
        (&beats, beats.as_str(), "SIGNATURE_EXPIRED"),
        (&beats, &foreign, "SIGNATURE_INVALID"),
        (&logs, &foreign, "SIGNATURE_INVALID"),
        (&beats, &forge(&outcome), "SIGNATURE_INVALID"),
        (&forge(&beats), &outcome, "SIGNATURE_INVALID"),
        (&beats, &paths.logs, "SIGNATURE_INVALID"),
    ] {
        let body = if path == &logs {
            lines("forged")
        } else {
            beat.clone()
        };
        let (status, response) = web.post_renewing(path, renewal, body).await;
        assert_eq!(
            (status, response["reason"].as_str()),
            (StatusCode::UNAUTHORIZED, Some(reason)),
            "{path} with {renewal}"
        );
    }
    assert_eq!(
        last_heartbeat(&running.mesh, user.tenant()).await,
        last,
        "no refused heartbeat is stored"
    );
    let (status, stored) = web.post_renewing(&logs, &outcome, lines("mine")).await;
    assert_eq!(status, StatusCode::OK, "{stored}");
    assert_eq!(
        texts(&read_logs(&user, tail(&user, &run.run_id)).await.0),
        ["mine"]
    );
    let (status, response) = web.post_renewing(&beats, &outcome, beat.clone()).await;
    assert_eq!(status, StatusCode::OK, "{response}");
    assert!(last_heartbeat(&running.mesh, user.tenant()).await > last);
    let (status, response) = web
        .post(response["renewed"]["heartbeat"].as_str().unwrap(), beat)
        .await;
    assert_eq!(
        status,
        StatusCode::OK,
        "the renewed path needs no other: {response}"
    );
}

#[tokio::test]
async fn a_heartbeat_timeout_that_no_manifest_can_have_is_refused() {
    let running = Running::shared().await;
    let user = running.user();
    let mut envelopes = work_by_hand(&user);
    user.deploy(manifest(vec![asset("web/a", &[], "")]))
        .await
        .unwrap();
    user.trigger(&["web.a"]).await.unwrap();
    let web = HttpClient::of(&running.mesh);
    let envelope = envelopes.recv().await.unwrap();
    let paths = envelope.callbacks.clone().unwrap();
    let task = json!({"ordinal": envelope.task.unwrap().ordinal});
    for timeout in ["0s", "-1s", "40000000s"] {
        for path in [&paths.heartbeat, &paths.start] {
            let body = json!({"task": task, "session": "by-hand", "heartbeatTimeout": timeout})
                .to_string();
            let response = web
                .refused(path, &body, StatusCode::BAD_REQUEST, "INVALID_FIELD")
                .await;
            let detail = response["detail"].as_str().unwrap();
            assert!(detail.contains("heartbeat_timeout"), "{response}");
        }
    }
    let stored = last_heartbeat(&running.mesh, user.tenant()).await;
    assert_eq!(stored, None, "no refused call is stored");
}
