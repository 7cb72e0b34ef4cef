//! What workers report: over plain HTTPS as over gRPC, with outputs that are committed, logs that are followed, and a way
//! for beats that may be closed for a while.

use std::time::Duration;

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use servo_client::api;
use servo_client::worker::{Attempt, Done, Handler, Worker, WorkerConfig};
use servo_local::LivenessPace;
use servo_model::Service;
use servo_tests::manifest::{asset, impatient, manifest};
use servo_tests::user::{User, WORKSPACE};
use sqlx::{Connection, PgConnection};
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tower::{Service as _, ServiceExt};

use crate::support::{Running, metrics};

/// Hands its envelopes to the test, which reports for them.
struct ByHand(mpsc::UnboundedSender<api::TaskEnvelope>);

impl Handler for ByHand {
    async fn run(&self, attempt: Attempt) -> Done {
        attempt.stop_beating();
        self.0.send(attempt.envelope().clone()).unwrap();
        std::future::pending().await
    }
}

fn work_by_hand(user: &User) -> mpsc::UnboundedReceiver<api::TaskEnvelope> {
    let (envelopes, got) = mpsc::unbounded_channel();
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
    got
}

/// Calls the callback over HTTPS, without a certificate.
struct Web {
    channel: Channel,
    base: String,
}

impl Web {
    fn of(running: &Running) -> Web {
        let base = running.mesh.http_address(Service::Callback);
        let ca = Certificate::from_pem(std::fs::read_to_string(running.mesh.ca_path()).unwrap());
        let tls = ClientTlsConfig::new().ca_certificate(ca);
        let endpoint = Endpoint::from_shared(base.clone()).unwrap();
        Web {
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

    /// With the path of the attempt's outcome beside one that has expired.
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
        let answer = channel.ready().await.unwrap().call(request).await.unwrap();
        let status = answer.status();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.send(Method::POST, path, "application/json", body.to_string())
            .await
    }

    /// The answer must be this refusal.
    async fn refused(&self, path: &str, body: &str, status: StatusCode, reason: &str) -> Value {
        let (answered, told) = self
            .send(Method::POST, path, "application/json", body.to_owned())
            .await;
        assert_eq!(
            (answered, told["reason"].as_str()),
            (status, Some(reason)),
            "{told}"
        );
        told
    }
}

fn tail(run_id: &str) -> api::TailLogsRequest {
    api::TailLogsRequest {
        tenant: servo_local::TENANT.into(),
        workspace: WORKSPACE.into(),
        run_id: run_id.into(),
        ..Default::default()
    }
}

/// Everything that is sent before the stream ends.
async fn read_logs(user: &User, asked: api::TailLogsRequest) -> (Vec<api::LogLine>, String) {
    let mut stream = user
        .client
        .callback()
        .tail_logs(asked)
        .await
        .unwrap()
        .into_inner();
    let (mut lines, mut token, mut caught_up) = (Vec::new(), String::new(), false);
    while let Some(message) = stream.message().await.unwrap() {
        lines.extend(message.lines);
        (token, caught_up) = (message.resume_token, message.caught_up);
    }
    assert!(caught_up, "a stream that ends has told everything");
    (lines, token)
}

fn texts(lines: &[api::LogLine]) -> Vec<&str> {
    lines.iter().map(|line| line.text.as_str()).collect()
}

#[tokio::test]
async fn an_attempt_is_reported_over_https_alone_and_its_log_is_followed() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let mut envelopes = work_by_hand(&user);
    user.deploy(manifest(vec![
        asset("web/a", &[], ""),
        asset("web/b", &["web/a"], ""),
    ]))
    .await
    .unwrap();
    let run = user.trigger(&["web.*"]).await.unwrap();
    let web = Web::of(&running);
    let follow = api::TailLogsRequest {
        follow: true,
        ..tail(&run.run_id)
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
        task_ids.push(envelope.task_id);
    }
    assert_eq!(
        user.ended(&run.run_id).await.unwrap().state(),
        api::RunState::Succeeded
    );
    let all = ["first quiet", "first loud", "second quiet", "second loud"];
    let (lines, _) = followed.await.unwrap();
    assert_eq!(texts(&lines), all, "each once, though sent twice");
    assert_eq!(
        (&lines[0].task_id, &lines[3].task_id),
        (&task_ids[0], &task_ids[1])
    );
    let (lines, token) = read_logs(&user, tail(&run.run_id)).await;
    assert_eq!(texts(&lines), all);
    let (none, _) = read_logs(
        &user,
        api::TailLogsRequest {
            resume_token: token,
            ..tail(&run.run_id)
        },
    )
    .await;
    assert_eq!(texts(&none), Vec::<&str>::new(), "nothing new came");
    let (last, _) = read_logs(
        &user,
        api::TailLogsRequest {
            last_lines: 3,
            ..tail(&run.run_id)
        },
    )
    .await;
    assert_eq!(texts(&last), all[1..]);
    let error = api::LogLevel::Error.into();
    let (loud, _) = read_logs(
        &user,
        api::TailLogsRequest {
            min_level: error,
            ..tail(&run.run_id)
        },
    )
    .await;
    assert_eq!(texts(&loud), ["first loud", "second loud"]);
    let of_task = api::TailLogsRequest {
        task_id: task_ids[1].clone(),
        ..tail(&run.run_id)
    };
    assert_eq!(texts(&read_logs(&user, of_task).await.0), all[2..]);
    let counted = metrics(&running, Service::Callback).await;
    assert!(
        counted.contains("servo_callback_log_lines_total{tenant_id=\"demo\"}"),
        "{counted}"
    );
    assert!(
        counted.contains("servo_callback_reports_total{kind=\"finished\",answer=\"folded\"} 2"),
        "{counted}"
    );
}

#[tokio::test]
async fn bad_calls_over_https_and_bad_tails_get_their_precise_errors() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let mut envelopes = work_by_hand(&user);
    user.deploy(manifest(vec![asset("web/a", &[], "")]))
        .await
        .unwrap();
    let run = user.trigger(&["web.a"]).await.unwrap();
    let web = Web::of(&running);
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
        let told = web
            .refused(&paths.finished, body, bad, "INVALID_FIELD")
            .await;
        assert!(told["detail"].as_str().unwrap().contains(word), "{told}");
    }
    let forged = format!("{}A", &paths.finished[..paths.finished.len() - 1]);
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
        "nothing of it counts"
    );
    let mut callback = user.client.callback();
    let absent = format!("run_{}", "a".repeat(26));
    let absent_task = format!("task_{}", "a".repeat(26));
    for (asked, code) in [
        (tail(&absent), tonic::Code::NotFound),
        (tail("x"), tonic::Code::InvalidArgument),
        (
            api::TailLogsRequest {
                task_id: absent_task,
                ..tail(&run.run_id)
            },
            tonic::Code::NotFound,
        ),
        (
            api::TailLogsRequest {
                resume_token: "AAAA".into(),
                ..tail(&run.run_id)
            },
            tonic::Code::OutOfRange,
        ),
        (
            api::TailLogsRequest {
                workspace: "other".into(),
                ..tail(&run.run_id)
            },
            tonic::Code::NotFound,
        ),
    ] {
        let refused = callback
            .tail_logs(asked.clone())
            .await
            .err()
            .map(|status| status.code());
        assert_eq!(refused, Some(code), "{asked:?}");
    }
}

#[tokio::test]
async fn only_committed_outputs_count() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = user.work(5);
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
        user.ended(&run.run_id).await.unwrap().state(),
        api::RunState::Failed
    );
    let tasks = user.tasks(&run.run_id).await.unwrap();
    let told = |name: &str| {
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
    assert_eq!(told("good"), (api::TaskState::Succeeded, String::new()));
    for (name, words) in [
        ("missing", ["outputs[0].uri", "there is no commit marker"]),
        ("wrong", ["outputs[0].commit_digest", "sha256"]),
        (
            "foreign",
            ["outputs[0].uri", "of materialization_id another"],
        ),
        (
            "elsewhere",
            ["outputs[0].uri", "outside of the attempt's folder"],
        ),
    ] {
        let (state, error) = told(name);
        assert_eq!(state, api::TaskState::Failed, "{name}");
        assert!(
            words.iter().all(|word| error.contains(word)),
            "{name}: {error}"
        );
    }
    let mut admin = PgConnection::connect(running.mesh.admin_url())
        .await
        .unwrap();
    let made: Vec<(String, i16)> =
        sqlx::query_as("SELECT asset_key, state FROM scheduler.materializations")
            .fetch_all(&mut admin)
            .await
            .unwrap();
    assert_eq!(
        made,
        [("out/good".to_owned(), 3)],
        "promoted is the good one alone"
    );
}

/// Waits, by the database's clock, until the last beat is this old.
async fn silence_of(running: &Running, seconds: f64) {
    let mut admin = PgConnection::connect(running.mesh.admin_url())
        .await
        .unwrap();
    let silent =
        "SELECT count(*) > 0 AND bool_and(beat_at < clock_timestamp() - make_interval(secs => $1))
        FROM callback.heartbeats";
    loop {
        let (silent,): (bool,) = sqlx::query_as(silent)
            .bind(seconds)
            .fetch_one(&mut admin)
            .await
            .unwrap();
        if silent {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Something is not there for twice the heartbeat timeout, in the way that `harm` makes it so. `lasts` waits that long.
async fn nobody_is_lost(
    harm: impl FnOnce(&mut Running),
    lasts: impl AsyncFnOnce(&Running),
    heal: impl FnOnce(&mut Running),
) {
    let mut running = Running::start_with(|options| options.pace(LivenessPace::QUICK)).await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = user.work(2);
    let nap = impatient(asset("nap/a", &[], r#"{"do":"sleep","ms":13000}"#));
    user.deploy(manifest(vec![nap])).await.unwrap();
    let run = user.trigger(&["nap.a"]).await.unwrap();
    silence_of(&running, 0.0).await;
    harm(&mut running);
    lasts(&running).await;
    heal(&mut running);
    // Fails with the last words of a process that could not begin, instead of waiting for it.
    running.mesh.wait_until_healthy().await.unwrap();
    let ended = user.ended(&run.run_id).await.unwrap();
    assert_eq!(ended.state(), api::RunState::Succeeded, "{ended:?}");
    let tasks = user.tasks(&run.run_id).await.unwrap();
    assert_eq!((tasks[0].attempt, tasks[0].failures), (1, 0), "{tasks:?}");
}

async fn nobody_is_heard(running: &Running) {
    silence_of(running, 9.0).await;
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

#[tokio::test]
async fn f04_a_stopped_callback_costs_no_attempt() {
    let (stop, go_on) = (
        signal(Service::Callback, Signal::SIGSTOP),
        signal(Service::Callback, Signal::SIGCONT),
    );
    nobody_is_lost(stop, nobody_is_heard, go_on).await;
}

#[tokio::test]
async fn f04_a_killed_callback_costs_no_attempt() {
    let kill = |running: &mut Running| running.mesh.kill_9(Service::Callback).unwrap();
    nobody_is_lost(kill, nobody_is_heard, |running| {
        running.mesh.launch(Service::Callback).unwrap()
    })
    .await;
}

/// Whoever judges was away itself: all that is due is long overdue when it comes back, and everybody is alive.
#[tokio::test]
async fn f04_a_stopped_scheduler_declares_nobody_lost() {
    let (stop, go_on) = (
        signal(Service::Scheduler, Signal::SIGSTOP),
        signal(Service::Scheduler, Signal::SIGCONT),
    );
    nobody_is_lost(
        stop,
        async |_| tokio::time::sleep(Duration::from_secs(9)).await,
        go_on,
    )
    .await;
}

/// The beat that is stored last, in seconds of the database's clock.
async fn last_beat(running: &Running) -> Option<f64> {
    let mut admin = PgConnection::connect(running.mesh.admin_url())
        .await
        .unwrap();
    let (at,): (Option<f64>,) =
        sqlx::query_as("SELECT extract(epoch FROM max(beat_at))::float8 FROM callback.heartbeats")
            .fetch_one(&mut admin)
            .await
            .unwrap();
    at
}

async fn beat_after(running: &Running, before: Option<f64>) {
    while last_beat(running).await <= before {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Something is not there for longer than a beat's signature lives; the attempt beats again and ends as the first.
async fn an_outage_outlasts_signatures(
    harm: impl FnOnce(&mut Running),
    heal: impl FnOnce(&mut Running),
) {
    let mut running = Running::start_with(|options| options.pace(LivenessPace::FORGETFUL)).await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = user.work(2);
    // Longer than the outage and the heartbeat timeout after it: its outcome does not come in time to save it.
    let nap = impatient(asset("nap/a", &[], r#"{"do":"sleep","ms":25000}"#));
    user.deploy(manifest(vec![nap])).await.unwrap();
    let run = user.trigger(&["nap.a"]).await.unwrap();
    beat_after(&running, None).await;
    harm(&mut running);
    let last = last_beat(&running).await;
    // The timeout of 4 s, three times the grace of 1 s, and the second that is rounded away.
    silence_of(&running, 9.0).await;
    heal(&mut running);
    running.mesh.wait_until_healthy().await.unwrap();
    beat_after(&running, last).await;
    let ended = user.ended(&run.run_id).await.unwrap();
    assert_eq!(ended.state(), api::RunState::Succeeded, "{ended:?}");
    let tasks = user.tasks(&run.run_id).await.unwrap();
    assert_eq!((tasks[0].attempt, tasks[0].failures), (1, 0), "{tasks:?}");
}

#[tokio::test]
async fn f14_a_callback_that_is_stopped_for_longer_than_signatures_live_costs_no_attempt() {
    let (stop, go_on) = (
        signal(Service::Callback, Signal::SIGSTOP),
        signal(Service::Callback, Signal::SIGCONT),
    );
    an_outage_outlasts_signatures(stop, go_on).await;
}

#[tokio::test]
async fn f14_a_callback_that_is_dead_for_longer_than_signatures_live_costs_no_attempt() {
    let kill = |running: &mut Running| running.mesh.kill_9(Service::Callback).unwrap();
    an_outage_outlasts_signatures(kill, |running| {
        running.mesh.launch(Service::Callback).unwrap()
    })
    .await;
}

/// Beats until the path is refused as expired.
async fn until_expired(web: &Web, path: &str, beat: &Value) {
    loop {
        let (status, told) = web.post(path, beat.clone()).await;
        if status == StatusCode::UNAUTHORIZED {
            assert_eq!(told["reason"], "SIGNATURE_EXPIRED", "{told}");
            return;
        }
        assert_eq!(status, StatusCode::OK, "{told}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn f15_an_expired_path_opens_nothing_without_its_own_attempts_outcome() {
    let running = Running::start_with(|options| options.pace(LivenessPace::FORGETFUL)).await;
    let user = User::of(&running.mesh).unwrap();
    let mut envelopes = work_by_hand(&user);
    user.deploy(manifest(vec![
        asset("web/a", &[], ""),
        asset("web/b", &[], ""),
    ]))
    .await
    .unwrap();
    let run = user.trigger(&["web.*"]).await.unwrap();
    let web = Web::of(&running);
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
    // Signatures of a shorter life than the asset's own: nobody counts as lost while they expire.
    let beat = json!({"task": task, "session": "by-hand", "heartbeatTimeout": "1s"});
    let (_, answer) = web.post(&paths.heartbeat, beat.clone()).await;
    let renewed = |verb: &str| answer["renewed"][verb].as_str().unwrap().to_owned();
    let (beats, logs, outcome) = (renewed("heartbeat"), renewed("logs"), paths.finished);
    until_expired(&web, &beats, &beat).await;
    let last = last_beat(&running).await;
    let lines =
        |text: &str| json!({"session": "by-hand", "sequence": "1", "lines": [{"text": text}]});
    let forged = |path: &str| format!("{}A", &path[..path.len() - 1]);
    for (path, renewal, reason) in [
        (&beats, "", "SIGNATURE_EXPIRED"),
        (&logs, "", "SIGNATURE_EXPIRED"),
        (&beats, beats.as_str(), "SIGNATURE_EXPIRED"),
        (&beats, &foreign, "SIGNATURE_INVALID"),
        (&logs, &foreign, "SIGNATURE_INVALID"),
        (&beats, &forged(&outcome), "SIGNATURE_INVALID"),
        (&forged(&beats), &outcome, "SIGNATURE_INVALID"),
        (&beats, &paths.logs, "SIGNATURE_INVALID"),
    ] {
        let body = if path == &logs {
            lines("forged")
        } else {
            beat.clone()
        };
        let (status, told) = web.post_renewing(path, renewal, body).await;
        let told = (
            status,
            told["reason"].as_str().unwrap_or_default().to_owned(),
        );
        assert_eq!(
            told,
            (StatusCode::UNAUTHORIZED, reason.to_owned()),
            "{path} with {renewal}"
        );
    }
    assert_eq!(last_beat(&running).await, last, "nothing of it was stored");
    let (status, stored) = web.post_renewing(&logs, &outcome, lines("mine")).await;
    assert_eq!(status, StatusCode::OK, "{stored}");
    assert_eq!(
        texts(&read_logs(&user, tail(&run.run_id)).await.0),
        ["mine"]
    );
    let (status, answer) = web.post_renewing(&beats, &outcome, beat.clone()).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert!(last_beat(&running).await > last);
    let (status, told) = web
        .post(answer["renewed"]["heartbeat"].as_str().unwrap(), beat)
        .await;
    assert_eq!(
        status,
        StatusCode::OK,
        "the renewed path opens by itself: {told}"
    );
}

#[tokio::test]
async fn a_heartbeat_timeout_that_no_manifest_can_have_is_refused() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let mut envelopes = work_by_hand(&user);
    user.deploy(manifest(vec![asset("web/a", &[], "")]))
        .await
        .unwrap();
    user.trigger(&["web.a"]).await.unwrap();
    let web = Web::of(&running);
    let envelope = envelopes.recv().await.unwrap();
    let paths = envelope.callbacks.clone().unwrap();
    let task = json!({"ordinal": envelope.task.unwrap().ordinal});
    for timeout in ["0s", "-1s", "40000000s"] {
        for path in [&paths.heartbeat, &paths.start] {
            let body = json!({"task": task, "session": "by-hand", "heartbeatTimeout": timeout})
                .to_string();
            let told = web
                .refused(path, &body, StatusCode::BAD_REQUEST, "INVALID_FIELD")
                .await;
            assert!(
                told["detail"]
                    .as_str()
                    .unwrap()
                    .contains("heartbeat_timeout"),
                "{told}"
            );
        }
    }
    assert_eq!(last_beat(&running).await, None, "none of it counts");
}
