//! Bad input through the public door: each kind gets its precise error, and nothing changes.

use servo_client::{Error, Reason, api};
use servo_local::{LocalMesh, TENANT};
use servo_tests::manifest::{asset, manifest, partitioned_fan_out};
use servo_tests::user::{User, WORKSPACE};
use sqlx::{Connection, PgConnection};
use tonic::{Code, Response, Status};

use crate::support::Running;

const OTHER: &str = "other";
const MEGABYTE: usize = 1 << 20;

/// How many rows there are of what a client can cause.
async fn rows(mesh: &LocalMesh) -> Vec<i64> {
    let mut connection = PgConnection::connect(mesh.admin_url()).await.unwrap();
    let counts = "SELECT array[(SELECT count(*) FROM ledger.events), (SELECT count(*) FROM ledger.keys), \
                  (SELECT count(*) FROM planner.deployments), (SELECT count(*) FROM planner.manifests), \
                  (SELECT count(*) FROM scheduler.runs), (SELECT count(*) FROM scheduler.tasks), \
                  (SELECT count(*) FROM scheduler.run_key_conflicts), (SELECT count(*) FROM quota.quotas), \
                  (SELECT count(*) FROM quota.pools), (SELECT count(*) FROM dispatcher.workers)]";
    sqlx::query_scalar(counts)
        .fetch_one(&mut connection)
        .await
        .unwrap()
}

/// The refusal has this code and reason, names this field unless it is empty, and says these words.
#[track_caller]
fn refused<T: std::fmt::Debug>(
    answer: Result<Response<T>, Status>,
    (code, reason): (Code, Reason),
    field: &str,
    words: &str,
) {
    let status = answer.expect_err("it was accepted");
    let Error::Refused {
        code: told,
        reason: why,
        message,
        violations,
        ..
    } = Error::from(status.clone())
    else {
        panic!("no refusal: {status:?}")
    };
    assert_eq!((told, why), (code, Some(reason)), "{status:?}");
    let fields: Vec<&str> = violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert!(
        field.is_empty() || fields.contains(&field),
        "`{field}` is not among {fields:?}: {message}"
    );
    let told: String = violations
        .iter()
        .map(|violation| violation.description.as_str())
        .collect();
    assert!(
        message.contains(words) || told.contains(words),
        "`{words}` is missing: {message} {told}"
    );
}

const INVALID: (Code, Reason) = (Code::InvalidArgument, Reason::InvalidField);
const MANIFEST: (Code, Reason) = (Code::InvalidArgument, Reason::ManifestInvalid);
const NO_RUN: (Code, Reason) = (Code::NotFound, Reason::RunNotFound);

const NO_POOL: (Code, Reason) = (Code::NotFound, Reason::PoolNotFound);
const NO_WORKER: (Code, Reason) = (Code::NotFound, Reason::WorkerNotFound);
const NO_DEPLOYMENT: (Code, Reason) = (Code::NotFound, Reason::DeploymentNotFound);

/// A mesh with something deployed, and what the other tenant has: a run with its task, a pool, a worker.
struct World {
    running: Running,
    user: User,
    other: User,
    foreign_run: String,
    foreign_deployment: String,
}

/// Texts that are no configuration, and what is said of them.
const NO_CONFIG: [(&str, &str); 4] = [
    ("{not json", "is no JSON"),
    ("{} {}", "is no JSON"),
    (r#"{"a":1,"a":2}"#, "`a` stands there twice"),
    (r#"{"b":[{"a":1,"a":1}]}"#, "`a` stands there twice"),
];

/// Of the other tenant.
const FOREIGN_POOL: &str = "theirs";
const FOREIGN_WORKER: &str = "01JD0000000000000000000001";

impl World {
    async fn start() -> World {
        let running = Running::start_with(|options| options.tenant(OTHER)).await;
        let user = User::of(&running.mesh).unwrap();
        let other = User::at(&running.mesh, 0, OTHER).unwrap();
        let mut manifest_with_hours = partitioned_fan_out(3);
        manifest_with_hours.assets.push(hourly());
        user.deploy(manifest_with_hours).await.unwrap();
        let deployed = other
            .deploy(manifest(vec![asset("n/a", &[], "")]))
            .await
            .unwrap();
        let foreign_deployment = deployed.deployment.unwrap().deployment_id;
        let foreign_run = other.trigger(&["n/a"]).await.unwrap().run_id;
        other.create_pool(FOREIGN_POOL, 1).await.unwrap();
        let worker = api::RegisterWorkerRequest {
            tenant: OTHER.to_owned(),
            worker_id: FOREIGN_WORKER.to_owned(),
            session: "s".to_owned(),
            info: Some(api::WorkerInfo {
                name: "theirs".to_owned(),
                slots: 1,
                ..Default::default()
            }),
        };
        other
            .client
            .dispatcher()
            .register_worker(worker)
            .await
            .unwrap();
        World {
            running,
            user,
            other,
            foreign_run,
            foreign_deployment,
        }
    }

    /// A question about a deployment of one's own tenant, by this id.
    fn deployment(&self, deployment_id: &str) -> api::GetDeploymentRequest {
        api::GetDeploymentRequest {
            tenant: TENANT.to_owned(),
            workspace: WORKSPACE.to_owned(),
            deployment_id: deployment_id.to_owned(),
            ..Default::default()
        }
    }

    fn task(&self, run_id: &str, task_id: &str) -> api::GetTaskRequest {
        api::GetTaskRequest {
            tenant: TENANT.to_owned(),
            workspace: WORKSPACE.to_owned(),
            run_id: run_id.to_owned(),
            task_id: task_id.to_owned(),
            ..Default::default()
        }
    }

    async fn deploy(
        &self,
        assets: Vec<api::AssetDefinition>,
    ) -> Result<Response<api::DeployResponse>, Status> {
        let asked = api::DeployRequest {
            tenant: TENANT.to_owned(),
            workspace: WORKSPACE.to_owned(),
            source: Some(api::deploy_request::Source::Manifest(manifest(assets))),
            ..Default::default()
        };
        self.user.client.planner().deploy(asked).await
    }

    async fn trigger(
        &self,
        change: impl FnOnce(&mut api::TriggerRunRequest),
    ) -> Result<Response<api::TriggerRunResponse>, Status> {
        let spec = api::RunSpec {
            selection: vec!["fan/root".to_owned()],
            ..Default::default()
        };
        let mut asked = api::TriggerRunRequest {
            tenant: TENANT.to_owned(),
            workspace: WORKSPACE.to_owned(),
            spec: Some(spec),
            ..Default::default()
        };
        change(&mut asked);
        self.user.client.scheduler().trigger_run(asked).await
    }

    async fn select(&self, selection: &str) -> Result<Response<api::TriggerRunResponse>, Status> {
        self.trigger(|asked| spec(asked).selection = vec![selection.to_owned()])
            .await
    }

    async fn partition(
        &self,
        asset: &str,
        key: &str,
    ) -> Result<Response<api::TriggerRunResponse>, Status> {
        let keys = api::PartitionKeys {
            keys: vec![key.to_owned()],
        };
        let wanted = api::partition_selection::Partitions::Keys(keys);
        self.trigger(|asked| {
            spec(asked).selection = vec![asset.to_owned()];
            spec(asked).partitions = Some(api::PartitionSelection {
                partitions: Some(wanted),
                only: 0,
            });
        })
        .await
    }

    async fn get(&self, run_id: &str) -> Result<Response<api::GetRunResponse>, Status> {
        let asked = api::GetRunRequest {
            tenant: TENANT.to_owned(),
            workspace: WORKSPACE.to_owned(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        self.user.client.scheduler().get_run(asked).await
    }
}

/// Partitioning into the hours of one year.
fn hourly() -> api::AssetDefinition {
    let hours = api::TimeGrid {
        grain: api::TimeGrain::Hour.into(),
        start: "2025-01-01T00:00:00Z".to_owned(),
        end: "2026-01-01T00:00:00Z".to_owned(),
        ..Default::default()
    };
    let values = Some(api::partition_dimension::Values::Time(hours));
    let dimensions = vec![api::PartitionDimension {
        name: "hour".to_owned(),
        values,
    }];
    let partitions = Some(api::PartitionsDefinition { dimensions });
    api::AssetDefinition {
        partitions,
        ..asset("fan/hourly", &[], "")
    }
}

fn spec(asked: &mut api::TriggerRunRequest) -> &mut api::RunSpec {
    asked.spec.get_or_insert_default()
}

fn long() -> String {
    "x".repeat(MEGABYTE)
}

#[tokio::test]
async fn f35_bad_manifests_are_refused_with_their_faults_and_change_nothing() {
    let world = World::start().await;
    let before = rows(&world.running.mesh).await;
    let plain = |key: &str, upstream: &[&str]| asset(key, upstream, "");

    let unknown = world.deploy(vec![plain("n/a", &["n/z"])]).await;
    refused(
        unknown,
        MANIFEST,
        "assets[0].dependencies[0].upstream",
        "n/z",
    );
    let twice = world
        .deploy(vec![plain("n/a", &[]), plain("n/a", &[])])
        .await;
    refused(twice, MANIFEST, "assets[1].key", "n/a");
    refused(
        world.deploy(vec![plain("Nonsense", &[])]).await,
        MANIFEST,
        "assets[0].key",
        "Nonsense",
    );
    refused(
        world.deploy(vec![plain("", &[])]).await,
        MANIFEST,
        "assets[0].key",
        "",
    );
    let circle = vec![
        plain("n/a", &["n/c"]),
        plain("n/b", &["n/a"]),
        plain("n/c", &["n/b"]),
    ];
    let cycle = (Code::InvalidArgument, Reason::CycleDetected);
    refused(
        world.deploy(circle).await,
        cycle,
        "",
        "n/a -> n/b -> n/c -> n/a",
    );
    refused(
        world.deploy(vec![plain("n/a", &["n/a"])]).await,
        cycle,
        "",
        "n/a -> n/a",
    );
    let too_large = (Code::InvalidArgument, Reason::MessageTooLarge);
    let wordy = api::AssetDefinition {
        description: long(),
        ..plain("n/a", &[])
    };
    refused(
        world.deploy(vec![wordy]).await,
        too_large,
        "",
        "manifest_uri",
    );
    let many = (0..10_001)
        .map(|n| plain(&format!("n/t{n}"), &[]))
        .collect();
    refused(world.deploy(many).await, MANIFEST, "assets", "10001");
    let configured = |text: &str| api::AssetDefinition {
        config_json: text.to_owned(),
        ..plain("n/a", &[])
    };
    for (text, words) in NO_CONFIG {
        refused(
            world.deploy(vec![configured(text)]).await,
            MANIFEST,
            "assets[0].config_json",
            words,
        );
    }

    assert_eq!(
        rows(&world.running.mesh).await,
        before,
        "events, keys, deployments, …"
    );
    world.running.mesh.stop().unwrap();
}

#[tokio::test]
async fn f35_bad_run_requests_are_refused_by_field_and_change_nothing() {
    let world = World::start().await;
    let before = rows(&world.running.mesh).await;
    let selection = (Code::InvalidArgument, Reason::SelectionInvalid);

    let unknown = (Code::NotFound, Reason::AssetNotFound);
    refused(
        world.select("fan/rot").await,
        unknown,
        "spec.selection[0]",
        "did you mean",
    );
    refused(
        world.select("+fan/rot").await,
        unknown,
        "spec.selection[0]",
        "did you mean",
    );
    refused(world.select("+").await, selection, "spec.selection[0]", "");
    refused(world.select("").await, selection, "spec.selection[0]", "");
    refused(
        world.select(&long()).await,
        selection,
        "spec.selection[0]",
        "",
    );
    refused(
        world.trigger(|asked| asked.spec = None).await,
        INVALID,
        "spec",
        "missing",
    );
    refused(
        world.trigger(|asked| asked.run_key = long()).await,
        INVALID,
        "run_key",
        "",
    );
    refused(
        world.trigger(|asked| asked.request_id = long()).await,
        INVALID,
        "request_id",
        "",
    );
    for (text, words) in NO_CONFIG {
        let asked = world
            .trigger(|asked| spec(asked).config_json = text.to_owned())
            .await;
        refused(asked, INVALID, "spec.config_json", words);
    }
    let strange = world
        .trigger(|asked| spec(asked).deployment_id = "x".to_owned())
        .await;
    refused(
        strange,
        (Code::NotFound, Reason::DeploymentNotFound),
        "",
        "",
    );
    let invalid = (Code::InvalidArgument, Reason::PartitionInvalid);
    let outside = (Code::OutOfRange, Reason::PartitionOutOfRange);
    let keys = "spec.partitions.keys";
    refused(
        world.partition("fan/part", "part=s:p99999").await,
        invalid,
        keys,
        "p99999",
    );
    refused(
        world.partition("fan/part", "part=i:7").await,
        invalid,
        keys,
        "",
    );
    let first = "spec.partitions.keys.keys[0]";
    refused(
        world.partition("fan/part", "nonsense").await,
        invalid,
        first,
        "",
    );
    refused(
        world.partition("fan/part", &long()).await,
        invalid,
        first,
        "",
    );
    refused(
        world
            .partition("fan/hourly", "hour=t:2027-01-01T00:00:00Z")
            .await,
        outside,
        keys,
        "2027",
    );

    assert_eq!(
        rows(&world.running.mesh).await,
        before,
        "events, keys, runs, tasks, …"
    );
    world.running.mesh.stop().unwrap();
}

#[tokio::test]
async fn inv_17_ids_of_others_and_ids_of_nobody_get_the_same_answer() {
    let world = World::start().await;
    let before = rows(&world.running.mesh).await;
    let nobody = "run_aaaaaaaaaaaaaaaaaaaaaaaaaa";
    let long = long();
    for id in [
        nobody,
        &world.foreign_run,
        "",
        "run_",
        "RUN_AAAA",
        "0",
        &long,
    ] {
        refused(world.get(id).await, NO_RUN, "", "");
        let asked = api::CancelRunRequest {
            tenant: TENANT.to_owned(),
            workspace: WORKSPACE.to_owned(),
            run_id: id.to_owned(),
            ..Default::default()
        };
        refused(
            world.user.client.scheduler().cancel_run(asked).await,
            NO_RUN,
            "",
            "",
        );
        let asked = api::ListTasksRequest {
            tenant: TENANT.to_owned(),
            workspace: WORKSPACE.to_owned(),
            run_id: id.to_owned(),
            ..Default::default()
        };
        refused(
            world.user.client.scheduler().list_tasks(asked).await,
            NO_RUN,
            "",
            "",
        );
    }
    // What it says of a foreign run differs from what it says of none by the id alone.
    let said = async |id: &str| world.get(id).await.unwrap_err().message().replace(id, "…");
    assert_eq!(said(&world.foreign_run).await, said(nobody).await);
    let foreign = world.trigger(|asked| asked.tenant = OTHER.to_owned()).await;
    refused(
        foreign,
        (Code::PermissionDenied, Reason::TenantMismatch),
        "",
        OTHER,
    );
    let nowhere = world
        .trigger(|asked| asked.tenant = String::new())
        .await
        .unwrap_err();
    assert!(
        matches!(
            nowhere.code(),
            Code::PermissionDenied | Code::InvalidArgument
        ),
        "{nowhere:?}"
    );

    assert_eq!(
        rows(&world.running.mesh).await,
        before,
        "events, keys, runs, tasks, …"
    );
    world.running.mesh.stop().unwrap();
}

#[tokio::test]
async fn inv_17_deployments_tasks_workers_and_pools_of_others_are_as_good_as_none() {
    let world = World::start().await;
    let client = &world.user.client;
    let before = rows(&world.running.mesh).await;

    for id in [
        world.foreign_deployment.as_str(),
        "01JD0000000000000000000009",
    ] {
        refused(
            client.planner().get_deployment(world.deployment(id)).await,
            NO_DEPLOYMENT,
            "",
            "",
        );
        let asked = world
            .trigger(|asked| spec(asked).deployment_id = id.to_owned())
            .await;
        refused(asked, NO_DEPLOYMENT, "", "");
    }
    let theirs = world
        .other
        .tasks(&world.foreign_run)
        .await
        .unwrap()
        .remove(0)
        .task_id;
    refused(
        client
            .scheduler()
            .get_task(world.task(&world.foreign_run, &theirs))
            .await,
        NO_RUN,
        "",
        "",
    );
    let forced = api::ForceCancelTaskRequest {
        tenant: TENANT.to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: world.foreign_run.clone(),
        task_id: theirs.clone(),
        ..Default::default()
    };
    refused(
        client.scheduler().force_cancel_task(forced).await,
        NO_RUN,
        "",
        "",
    );
    for worker_id in [FOREIGN_WORKER, "01JD0000000000000000000009"] {
        let (tenant, worker_id) = (TENANT.to_owned(), worker_id.to_owned());
        let drain = api::DrainWorkerRequest {
            tenant: tenant.clone(),
            worker_id: worker_id.clone(),
            ..Default::default()
        };
        refused(
            client.dispatcher().drain_worker(drain).await,
            NO_WORKER,
            "",
            "",
        );
        let kill = api::KillWorkerRequest {
            tenant,
            worker_id,
            ..Default::default()
        };
        refused(
            client.dispatcher().kill_worker(kill).await,
            NO_WORKER,
            "",
            "",
        );
    }
    for pool in [FOREIGN_POOL, "nobodys"] {
        let (tenant, pool) = (TENANT.to_owned(), pool.to_owned());
        let read = api::GetPoolRequest {
            tenant: tenant.clone(),
            pool: pool.clone(),
        };
        refused(client.quota().get_pool(read).await, NO_POOL, "", "");
        let change = api::UpdatePoolRequest {
            tenant: tenant.clone(),
            pool: pool.clone(),
            slots: 9,
            expected_version: 1,
            ..Default::default()
        };
        refused(client.quota().update_pool(change).await, NO_POOL, "", "");
        let delete = api::DeletePoolRequest {
            tenant,
            pool,
            expected_version: 1,
            ..Default::default()
        };
        refused(client.quota().delete_pool(delete).await, NO_POOL, "", "");
    }

    assert_eq!(
        rows(&world.running.mesh).await,
        before,
        "events, pools, workers, …"
    );
    world.running.mesh.stop().unwrap();
}

/// One below, at, and one above a limit: the first two are taken, the last is refused with the number in it.
async fn edge<T: std::fmt::Debug>(
    what: &str,
    limit: usize,
    ask: impl AsyncFn(usize) -> Result<Response<T>, Status>,
) {
    for size in [limit - 1, limit] {
        let taken = ask(size).await;
        assert!(taken.is_ok(), "{what} of {size}: {taken:?}");
    }
    let refused = ask(limit + 1)
        .await
        .expect_err(&format!("{what} of {} was taken", limit + 1));
    assert_eq!(refused.code(), Code::InvalidArgument, "{what}: {refused:?}");
    let Error::Refused {
        message,
        violations,
        ..
    } = Error::from(refused)
    else {
        panic!("{what}: no refusal")
    };
    let told: String = violations
        .iter()
        .map(|violation| violation.description.as_str())
        .collect();
    let named = [limit, limit + 1].map(|number| number.to_string());
    let digits: String = format!("{message} {told}").replace(['_', ',', '\u{202f}'], "");
    assert!(
        named.iter().any(|number| digits.contains(number)),
        "{what}: {message} {told}"
    );
}

/// `{"a":"xx…"}` of so many bytes.
fn config_of(bytes: usize) -> String {
    format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - r#"{"a":""}"#.len()))
}

#[tokio::test]
async fn f35_every_limit_of_a_request_holds_at_its_edge() {
    use servo_model::limits;
    let world = World::start().await;
    let plain = |key: &str| asset(key, &[], "");
    let text = |length: usize| "x".repeat(length);

    edge("run_key", limits::RUN_KEY_BYTES_MAX, async |length| {
        world.trigger(|asked| asked.run_key = text(length)).await
    })
    .await;
    edge("request_id", 128, async |length| {
        world.trigger(|asked| asked.request_id = text(length)).await
    })
    .await;
    edge(
        "spec.config_json",
        limits::CONFIGS_PER_TASK_BYTES_MAX,
        async |bytes| {
            world
                .trigger(|asked| spec(asked).config_json = config_of(bytes))
                .await
        },
    )
    .await;
    edge("spec.labels", 32, async |count| {
        let labels = (0..count)
            .map(|n| (format!("l{n}"), "x".to_owned()))
            .collect();
        world.trigger(|asked| spec(asked).labels = labels).await
    })
    .await;
    edge("a label", 256, async |length| {
        world
            .trigger(|asked| drop(spec(asked).labels.insert("l".to_owned(), text(length))))
            .await
    })
    .await;
    edge("a namespace", limits::NAME_BYTES_MAX, async |length| {
        world
            .deploy(vec![plain(&format!("{}/a", text(length)))])
            .await
    })
    .await;
    edge(
        "assets[0].config_json",
        limits::CONFIG_BYTES_MAX,
        async |length| {
            world
                .deploy(vec![api::AssetDefinition {
                    config_json: config_of(length),
                    ..plain("n/a")
                }])
                .await
        },
    )
    .await;
    edge("static values", limits::STATIC_VALUES_MAX, async |count| {
        world.deploy(partitioned_fan_out(count).assets).await
    })
    .await;
    edge(
        "dimensions",
        limits::PARTITION_DIMENSIONS_MAX,
        async |count| {
            let one = |n| api::PartitionDimension {
                name: format!("d{n}"),
                ..one_value()
            };
            let partitions = Some(api::PartitionsDefinition {
                dimensions: (0..count).map(one).collect(),
            });
            world
                .deploy(vec![api::AssetDefinition {
                    partitions,
                    ..plain("n/a")
                }])
                .await
        },
    )
    .await;
    edge("assets", limits::ASSETS_PER_MANIFEST_MAX, async |count| {
        world
            .deploy((0..count).map(|n| plain(&format!("n/t{n}"))).collect())
            .await
    })
    .await;
    world.running.mesh.stop().unwrap();
}

/// A dimension with one value, still without a name.
fn one_value() -> api::PartitionDimension {
    let values = api::StaticValues {
        r#type: api::ValueType::String.into(),
        values: vec!["x".to_owned()],
    };
    api::PartitionDimension {
        values: Some(api::partition_dimension::Values::Fixed(values)),
        ..Default::default()
    }
}
