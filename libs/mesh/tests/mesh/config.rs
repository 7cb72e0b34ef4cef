//! Wrong configurations, as data: the settings, and every sentence that must be reported.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde::Deserialize;
use servo_local::Issue;
use servo_mesh::{Fault, Settings, Sources, config};
use servo_model::Service;

use crate::support::World;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    database: Database,
    #[serde(default)]
    scheduler: Scheduler,
    #[serde(default)]
    pools: Vec<Pool>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pool {
    name: String,
    slots: u8,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Database {
    url: String,
    password: String,
    #[serde(default)]
    replicas: Vec<u16>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Scheduler {
    #[serde(deserialize_with = "config::duration")]
    lease: Duration,
    shards: u8,
    keys: BTreeMap<String, u32>,
    eager: bool,
    share: f64,
}

impl Default for Scheduler {
    fn default() -> Scheduler {
        let lease = Duration::from_secs(3);
        Scheduler {
            lease,
            shards: 64,
            keys: BTreeMap::new(),
            eager: false,
            share: 0.5,
        }
    }
}

fn read(world: &World, toml: &str, variables: &[(&str, &str)]) -> Result<Settings<Own>, Fault> {
    std::fs::write(world.path("servo.toml"), toml).unwrap();
    let sources = tls_only(world).file(world.path("servo.toml"));
    let sources = variables.iter().fold(sources, |sources, (name, value)| {
        sources.variable(*name, *value)
    });
    Settings::read(Service::Scheduler, &sources)
}

fn tls_only(world: &World) -> Sources {
    world.issue("scheduler", &Issue::identity("spiffe://servo/scheduler"));
    Sources::new()
        .set("tls.certificate", world.path("scheduler.crt").display())
        .set("tls.key", world.path("scheduler.key").display())
        .set("tls.ca", world.path("ca.crt").display())
}

const GOOD: &str = "[database]\nurl = 'postgres://localhost/servo'\npassword = 'x'\n";

/// `{file}` in an expected sentence stands for the path of the file.
fn check(toml: &str, variables: &[(&str, &str)], expected: &[&str]) {
    let world = World::new();
    let file = world.path("servo.toml").display().to_string();
    let Err(Fault::Config(faults)) = read(&world, toml, variables) else {
        panic!("{toml} was accepted")
    };
    let found: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let expected: Vec<String> = expected
        .iter()
        .map(|sentence| sentence.replace("{file}", &file))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn later_layers_override_earlier_ones_and_defaults_fill_the_rest() {
    let world = World::new();
    let toml = "
        [server]
        listen = '127.0.0.1:7000'
        grace = '250ms'
        [peers]
        planner = 'https://planner:7411'
        [database]
        url = 'postgres://from-file/servo'
        password = 'file'
        [scheduler]
        lease = '5s'
        keys = { a = 1, b = 2 }
        [[pools]]
        name = 'front'
        slots = 9
        [planner]
        belongs_to = 'another service that reads the same file'
    ";
    let variables = [
        ("SERVO_DATABASE__PASSWORD", "12345"),
        ("SERVO_DATABASE__REPLICAS", "1, 2"),
        ("SERVO_SCHEDULER__SHARDS", "7"),
        ("SERVO_SCHEDULER__EAGER", "true"),
        ("SERVO_SCHEDULER__SHARE", "0.25"),
        ("SERVO_SERVER__MAX_MESSAGE", "64KiB"),
        ("SERVO_DATABASE_URL", "not configuration"),
        ("PATH", "__"),
    ];
    let settings = read(&world, toml, &variables).unwrap_or_else(|fault| panic!("{fault}"));
    let (own, common) = (&settings.own, &settings.common);
    assert_eq!(own.database.url, "postgres://from-file/servo");
    assert_eq!(own.database.password, "12345");
    assert_eq!(own.database.replicas, [1, 2]);
    assert_eq!(
        own.pools,
        [Pool {
            name: "front".into(),
            slots: 9
        }]
    );
    assert_eq!(own.scheduler.lease, Duration::from_secs(5));
    assert_eq!(
        (
            own.scheduler.shards,
            own.scheduler.eager,
            own.scheduler.share
        ),
        (7, true, 0.25)
    );
    assert_eq!(
        own.scheduler.keys,
        BTreeMap::from([("a".into(), 1), ("b".into(), 2)])
    );
    assert_eq!(
        common.server.address(Service::Scheduler),
        "127.0.0.1:7000".parse::<SocketAddr>().unwrap()
    );
    assert_eq!(
        common.server.metrics_address(Service::Scheduler).port(),
        7512
    );
    assert_eq!(
        (common.server.grace, common.server.max_message),
        (Duration::from_millis(250), 65_536)
    );
    assert_eq!(
        common.peers.address(Service::Planner),
        "https://planner:7411"
    );
    assert_eq!(
        common.peers.address(Service::Quota),
        "https://127.0.0.1:7417"
    );
}

#[test]
fn errors_of_unknown_keys_suggest_the_nearest_known_key() {
    check(
        &format!("{GOOD}[serverr]\nx = 1\n[scheduler]\nlaese = '5s'\n[server]\ncolour = 'red'\n"),
        &[
            ("SERVO_PEERS__PLANER", "https://p:1"),
            ("SERVO_SHEDULER__LEASE", "5s"),
        ],
        &[
            "peers.planer: unknown key (environment variable SERVO_PEERS__PLANER); did you mean `planner`?",
            "scheduler.laese: unknown key (file {file}); did you mean `lease`?",
            "server.colour: unknown key (file {file}); known here are grace, handshake_timeout, listen, max_connections, \
             max_deadline, max_message, max_requests, max_streams, metrics_listen, ready_every",
            "serverr: unknown key (file {file}); did you mean `server`?",
            "sheduler: unknown key (environment variable SERVO_SHEDULER__LEASE); did you mean `scheduler`?",
        ],
    );
}

#[test]
fn errors_of_wrong_types_name_the_value_and_the_allowed_ones() {
    check(
        &format!(
            "{GOOD}[scheduler]\nlease = 5\nshards = 300\neager = 'yes'\nkeys = {{ a = 'x', b = 'y' }}\nshare = []\n\
             [telemetry]\nformat = 'xml'\n[server]\nlisten = 'localhost'\ngrace = '5 minutes'\n"
        ),
        &[
            ("SERVO_SERVER__MAX_REQUESTS", "many"),
            ("SERVO_SERVER__MAX_MESSAGE", "4MB"),
        ],
        &[
            "scheduler.eager: found `yes` (file {file}), but true or false is allowed",
            "scheduler.keys.a: found `x` (file {file}), but a whole number from 0 to 4294967295 is allowed",
            "scheduler.keys.b: found `y` (file {file}), but a whole number from 0 to 4294967295 is allowed",
            "scheduler.lease: found the number 5 (file {file}), but a duration, a whole number with ms, s, m or h, such as \
             `250ms` or `5s`, is allowed",
            "scheduler.shards: found the number 300 (file {file}), but a whole number from 0 to 255 is allowed",
            "scheduler.share: found a list (file {file}), but a number is allowed",
            "server.grace: found `5 minutes` (file {file}), but a duration, a whole number with ms, s, m or h, such \
             as `250ms` or `5s`, is allowed",
            "server.listen: found `localhost` (file {file}), but an IP address with a port, such as `127.0.0.1:7412` or \
             `[::]:7412`, is allowed",
            "server.max_message: found `4MB` (environment variable SERVO_SERVER__MAX_MESSAGE), but a size, a whole \
             number with B, KiB or MiB, such as `64KiB` or `4MiB`, is allowed",
            "server.max_requests: found `many` (environment variable SERVO_SERVER__MAX_REQUESTS), but a whole number \
             from 0 to 4294967295 is allowed",
            "telemetry.format: found `xml` (file {file}), but one of json, pretty is allowed",
        ],
    );
}

#[test]
fn values_out_of_range_are_refused() {
    check(
        &format!(
            "{GOOD}[server]\nmax_requests = 0\nmax_message = '8MiB'\ngrace = '2h'\n\
             [telemetry]\nfilter = 'servo=loud'\n[peers]\nplanner = 'http://planner:7411'\nquota = 'https://quota'\n"
        ),
        &[("SERVO_PEERS__MAX_RETRIES", "11")],
        &[
            "peers.max_retries: found 11 (environment variable SERVO_PEERS__MAX_RETRIES), but 0 to 10 is allowed",
            "peers.planner: found `http://planner:7411` (file {file}), but https:// with a host and a port is allowed, \
             such as `https://127.0.0.1:7412`",
            "peers.quota: found `https://quota` (file {file}), but https:// with a host and a port is allowed, such as \
             `https://127.0.0.1:7412`",
            "server.grace: found 7200s (file {file}), but 0s to 60m is allowed",
            "server.max_message: found 8388608 (file {file}), but 1KiB to 4MiB is allowed",
            "server.max_requests: found 0 (file {file}), but 1 to 1000000 is allowed",
            "telemetry.filter: found `servo=loud` (file {file}), but a level or target=level pairs are allowed, such as \
             `info,servo_mesh=debug` (error parsing level filter: expected one of \"off\", \"error\", \"warn\", \
             \"info\", \"debug\", \"trace\", or a number 0-5)",
        ],
    );
}

#[test]
fn collector_address_needs_a_scheme_a_host_and_a_port() {
    for wrong in [
        "",
        "collector",
        "collector:4317",
        "grpc://collector:4317",
        "http://collector",
        "http://c:1/v1",
    ] {
        let found = format!(
            "telemetry.otlp_endpoint: found `{wrong}` (environment variable SERVO_TELEMETRY__OTLP_ENDPOINT), but the \
             gRPC port of an OTLP collector is allowed, http:// or https:// with a host and a port, such as \
             `http://127.0.0.1:4317`"
        );
        check(
            GOOD,
            &[("SERVO_TELEMETRY__OTLP_ENDPOINT", wrong)],
            &[&found],
        );
    }
    for good in [
        "http://127.0.0.1:4317",
        "https://collector.example:4317",
        "http://[::1]:4317/",
    ] {
        let settings = read(
            &World::new(),
            GOOD,
            &[("SERVO_TELEMETRY__OTLP_ENDPOINT", good)],
        );
        let settings = settings.unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(
            settings.common.telemetry.otlp_endpoint.as_deref(),
            Some(good)
        );
    }
}

#[test]
fn all_missing_values_are_reported_together() {
    check(
        "[database]\nurl = 7\n",
        &[],
        &[
            "database.password: not set; set it in the file or as SERVO_DATABASE__PASSWORD",
            "database.url: found the number 7 (file {file}), but text is allowed",
        ],
    );
    let Err(Fault::Config(faults)) = Settings::<Own>::read(Service::Scheduler, &Sources::new())
    else {
        panic!("an empty configuration was accepted")
    };
    let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "database.password",
            "database.url",
            "tls.ca",
            "tls.certificate",
            "tls.key"
        ]
    );
    assert!(
        faults
            .iter()
            .all(|fault| fault.sentence.starts_with("not set")),
        "{faults:?}"
    );
}

#[test]
fn faults_in_a_list_name_the_entry() {
    check(
        &format!(
            "{GOOD}replicas = [1, 'two', 3, 'four']\n[[pools]]\nname = 'front'\n[[pools]]\nnmae = 'back'\nslots = 300\n"
        ),
        &[],
        &[
            "database.replicas[1]: found `two` (file {file}), but a whole number from 0 to 65535 is allowed",
            "database.replicas[3]: found `four` (file {file}), but a whole number from 0 to 65535 is allowed",
            "pools[0].slots: not set; set it in the file",
            "pools[1].name: not set; set it in the file",
            "pools[1].nmae: unknown key (file {file}); did you mean `name`?",
            "pools[1].slots: found the number 300 (file {file}), but a whole number from 0 to 255 is allowed",
        ],
    );
}

#[test]
fn secrets_are_not_part_of_error_messages() {
    let world = World::new();
    let toml = "[database]\nurl = ['postgres://user:hunter2@localhost']\npassword = ['hunter2']\n";
    let Err(fault) = read(&world, toml, &[]) else {
        panic!("lists were accepted as text")
    };
    assert!(!fault.to_string().contains("hunter2"), "{fault}");
}

#[test]
fn unreadable_or_malformed_file_is_reported() {
    let world = World::new();
    let missing = tls_only(&world).file(world.path("nowhere.toml"));
    let Err(fault) = Settings::<Own>::read(Service::Scheduler, &missing) else {
        panic!("a missing file was accepted")
    };
    let path = world.path("nowhere.toml").display().to_string();
    assert_eq!(
        fault.to_string(),
        format!(
            "the configuration is wrong: SERVO_CONFIG: the file {path} cannot be read: No such file or directory (os \
             error 2)"
        )
    );
    check(
        "[database]\nurl = \n",
        &[],
        &[
            "SERVO_CONFIG: the file {file} is not TOML at line 2: string values must be \
         quoted, expected literal string",
        ],
    );
    check(
        GOOD,
        &[("SERVO_DATABASE__URL__HOST", "x")],
        &["database.url.host: (environment variable \
         SERVO_DATABASE__URL__HOST) cannot be set, since a part of its name already is a value (file {file})"],
    );
}

#[test]
fn faulty_certificates_are_configuration_faults() {
    let check = |prepare: &dyn Fn(&World), expected: &str| {
        let world = World::new();
        let sources = world.sources(Service::Planner);
        prepare(&world);
        let Err(fault) = Settings::<servo_mesh::NoSections>::read(Service::Planner, &sources)
        else {
            panic!("{expected}: it was accepted")
        };
        let expected = expected.replace("{dir}", &world.dir().display().to_string());
        assert_eq!(
            fault.to_string(),
            format!("the configuration is wrong: {expected}")
        );
    };
    let planner = Issue::identity("spiffe://servo/planner");
    check(
        &|world| std::fs::remove_file(world.path("planner.key")).unwrap(),
        "tls.key: the file {dir}/planner.key cannot be read: No such file or directory (os error 2)",
    );
    check(
        &|world| std::fs::write(world.path("planner.crt"), "hello").unwrap(),
        "tls.certificate: the file {dir}/planner.crt holds no PEM certificate",
    );
    check(
        &|world| std::fs::write(world.path("planner.key"), "hello").unwrap(),
        "tls.key: the file {dir}/planner.key holds no PEM private key: no items found",
    );
    check(
        &|world| {
            world.issue("other", &planner);
            std::fs::rename(world.path("other.key"), world.path("planner.key")).unwrap();
        },
        "tls.key: the file {dir}/planner.key does not belong to the certificate {dir}/planner.crt",
    );
    check(
        &|world| world.issue("planner", &Issue::without_identity()),
        "tls.certificate: the file {dir}/planner.crt carries no SPIFFE id; issue it with the URI spiffe://servo/planner",
    );
    check(
        &|world| world.issue("planner", &Issue::identity("spiffe://servo/quota")),
        "tls.certificate: the file {dir}/planner.crt is for spiffe://servo/quota, but this service is \
         spiffe://servo/planner",
    );
    check(
        &|world| std::fs::write(world.path("ca.crt"), "").unwrap(),
        "tls.ca: the file {dir}/ca.crt holds no PEM certificate",
    );
}

#[test]
fn expired_certificate_is_refused_at_startup() {
    let world = World::new();
    let sources = world.sources(Service::Planner);
    world.issue(
        "planner",
        &Issue::identity("spiffe://servo/planner").expired(),
    );
    let Err(fault) = Settings::<servo_mesh::NoSections>::read(Service::Planner, &sources) else {
        panic!("it was accepted")
    };
    let fault = fault.to_string();
    assert!(
        fault.contains("planner.crt expired on ") && fault.ends_with("; issue a new certificate"),
        "{fault}"
    );
}
