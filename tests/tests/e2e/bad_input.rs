//! Invalid requests through the gateway: each gets a precise error and changes nothing.

use servo_client::{Error, Reason, api};
use servo_tests::manifest::{asset, manifest, partitioned_fan_out};
use servo_tests::running::SharedMesh;
use servo_tests::user::{User, WORKSPACE};
use sqlx::{Connection, PgConnection};
use tonic::{Code, Response, Status};

use crate::support::Running;

const MEGABYTE: usize = 1 << 20;

/// Asserts that a call was refused with this code and reason, for this field unless it is empty,
/// and with these words.
#[track_caller]
fn refused<T: std::fmt::Debug>(
    result: Result<Response<T>, Status>,
    (code, reason): (Code, Reason),
    field: &str,
    words: &str,
) {
    let status = result.expect_err("the call was accepted");
    let Error::Refused {
        code: actual_code,
        reason: actual_reason,
        message,
        violations,
        ..
    } = Error::from(status.clone())
    else {
        panic!("not a refusal: {status:?}")
    };
    assert_eq!(
        (actual_code, actual_reason),
        (code, Some(reason)),
        "{status:?}"
    );
    let fields: Vec<&str> = violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert!(
        field.is_empty() || fields.contains(&field),
        "`{field}` is not among {fields:?}: {message}"
    );
    let descriptions: String = violations
        .iter()
        .map(|violation| violation.description.as_str())
        .collect();
    assert!(
        message.contains(words) || descriptions.contains(words),
        "`{words}` is missing: {message} {descriptions}"
    );
}

const INVALID: (Code, Reason) = (Code::InvalidArgument, Reason::InvalidField);
const MANIFEST: (Code, Reason) = (Code::InvalidArgument, Reason::ManifestInvalid);
const NO_RUN: (Code, Reason) = (Code::NotFound, Reason::RunNotFound);

const NO_POOL: (Code, Reason) = (Code::NotFound, Reason::PoolNotFound);
const NO_WORKER: (Code, Reason) = (Code::NotFound, Reason::WorkerNotFound);
const NO_DEPLOYMENT: (Code, Reason) = (Code::NotFound, Reason::DeploymentNotFound);

/// A tenant with a deployment, and another tenant with a deployment, a run, a pool and a worker.
struct World {
    running: SharedMesh,
    user: User,
    other: User,
    foreign_run: String,
    foreign_deployment: String,
    foreign_worker: String,
}

/// Invalid configurations, and a part of the error of each.
const INVALID_CONFIGS: [(&str, &str); 4] = [
    ("{not json", "JSON"),
    ("{} {}", "JSON"),
    (r#"{"a":1,"a":2}"#, "twice"),
    (r#"{"b":[{"a":1,"a":1}]}"#, "twice"),
];

/// A pool of the other tenant.
const FOREIGN_POOL: &str = "theirs";

impl World {
    async fn start() -> World {
        let running = Running::shared().await;
        let user = running.user();
        let other = running.other_user();
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
        let foreign_worker = ulid::Ulid::generate().to_string();
        let worker = api::RegisterWorkerRequest {
            tenant: other.tenant().to_owned(),
            worker_id: foreign_worker.clone(),
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
            foreign_worker,
        }
    }

    fn tenant(&self) -> String {
        self.user.tenant().to_owned()
    }

    /// The numbers of rows of both tenants that a client can cause.
    async fn rows(&self) -> Vec<i64> {
        let mut admin = PgConnection::connect(self.running.mesh.admin_url())
            .await
            .unwrap();
        let counted = [
            "ledger.events",
            "planner.deployments",
            "planner.manifests",
            "scheduler.runs",
            "scheduler.tasks",
            "scheduler.run_key_conflicts",
            "quota.quotas",
            "quota.pools",
            "dispatcher.workers",
        ];
        let mut counts = Vec::new();
        for table in counted {
            let count = format!("SELECT count(*) FROM {table} WHERE tenant = ANY($1)");
            let count = sqlx::query_scalar(sqlx::AssertSqlSafe(count))
                .bind([self.user.tenant(), self.other.tenant()])
                .fetch_one(&mut admin);
            counts.push(count.await.unwrap());
        }
        // Keys have no tenant; a key without an event is one of a refused request.
        let keys = "SELECT count(*) FROM ledger.keys k WHERE NOT EXISTS
            (SELECT FROM ledger.events e WHERE e.event_id = k.event_id)";
        counts.push(
            sqlx::query_scalar(keys)
                .fetch_one(&mut admin)
                .await
                .unwrap(),
        );
        counts
    }

    /// A request for a deployment of the own tenant by this id.
    fn deployment(&self, deployment_id: &str) -> api::GetDeploymentRequest {
        api::GetDeploymentRequest {
            tenant: self.tenant(),
            workspace: WORKSPACE.to_owned(),
            deployment_id: deployment_id.to_owned(),
            ..Default::default()
        }
    }

    fn task(&self, run_id: &str, task_id: &str) -> api::GetTaskRequest {
        api::GetTaskRequest {
            tenant: self.tenant(),
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
        let request = api::DeployRequest {
            tenant: self.tenant(),
            workspace: WORKSPACE.to_owned(),
            source: Some(api::deploy_request::Source::Manifest(manifest(assets))),
            ..Default::default()
        };
        self.user.client.planner().deploy(request).await
    }

    async fn trigger(
        &self,
        change: impl FnOnce(&mut api::TriggerRunRequest),
    ) -> Result<Response<api::TriggerRunResponse>, Status> {
        let spec = api::RunSpec {
            selection: vec!["fan/root".to_owned()],
            ..Default::default()
        };
        let mut request = api::TriggerRunRequest {
            tenant: self.tenant(),
            workspace: WORKSPACE.to_owned(),
            spec: Some(spec),
            ..Default::default()
        };
        change(&mut request);
        self.user.client.scheduler().trigger_run(request).await
    }

    async fn select(&self, selection: &str) -> Result<Response<api::TriggerRunResponse>, Status> {
        self.trigger(|request| spec(request).selection = vec![selection.to_owned()])
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
        self.trigger(|request| {
            spec(request).selection = vec![asset.to_owned()];
            spec(request).partitions = Some(api::PartitionSelection {
                partitions: Some(wanted),
                only: 0,
            });
        })
        .await
    }

    async fn get(&self, run_id: &str) -> Result<Response<api::GetRunResponse>, Status> {
        let request = api::GetRunRequest {
            tenant: self.tenant(),
            workspace: WORKSPACE.to_owned(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        self.user.client.scheduler().get_run(request).await
    }
}

/// An asset with a partition for each hour of one year.
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

fn spec(request: &mut api::TriggerRunRequest) -> &mut api::RunSpec {
    request.spec.get_or_insert_default()
}

fn long() -> String {
    "x".repeat(MEGABYTE)
}

#[tokio::test]
async fn f35_invalid_manifests_are_refused_with_their_faults_and_change_nothing() {
    let world = World::start().await;
    let before = world.rows().await;
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
    for (text, words) in INVALID_CONFIGS {
        refused(
            world.deploy(vec![configured(text)]).await,
            MANIFEST,
            "assets[0].config_json",
            words,
        );
    }

    assert_eq!(world.rows().await, before, "events, keys, deployments, …");
}

#[tokio::test]
async fn f35_invalid_run_requests_are_refused_by_field_and_change_nothing() {
    let world = World::start().await;
    let before = world.rows().await;
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
        world.trigger(|request| request.spec = None).await,
        INVALID,
        "spec",
        "missing",
    );
    refused(
        world.trigger(|request| request.run_key = long()).await,
        INVALID,
        "run_key",
        "",
    );
    refused(
        world.trigger(|request| request.request_id = long()).await,
        INVALID,
        "request_id",
        "",
    );
    for (text, words) in INVALID_CONFIGS {
        let request = world
            .trigger(|request| spec(request).config_json = text.to_owned())
            .await;
        refused(request, INVALID, "spec.config_json", words);
    }
    let absent = world
        .trigger(|request| spec(request).deployment_id = "x".to_owned())
        .await;
    refused(absent, (Code::NotFound, Reason::DeploymentNotFound), "", "");
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

    assert_eq!(world.rows().await, before, "events, keys, runs, tasks, …");
}

#[tokio::test]
async fn inv_17_foreign_run_ids_get_the_same_error_as_absent_ones() {
    let world = World::start().await;
    let before = world.rows().await;
    let absent = "run_aaaaaaaaaaaaaaaaaaaaaaaaaa";
    let long = long();
    for id in [
        absent,
        &world.foreign_run,
        "",
        "run_",
        "RUN_AAAA",
        "0",
        &long,
    ] {
        refused(world.get(id).await, NO_RUN, "", "");
        let request = api::CancelRunRequest {
            tenant: world.tenant(),
            workspace: WORKSPACE.to_owned(),
            run_id: id.to_owned(),
            ..Default::default()
        };
        refused(
            world.user.client.scheduler().cancel_run(request).await,
            NO_RUN,
            "",
            "",
        );
        let request = api::ListTasksRequest {
            tenant: world.tenant(),
            workspace: WORKSPACE.to_owned(),
            run_id: id.to_owned(),
            ..Default::default()
        };
        refused(
            world.user.client.scheduler().list_tasks(request).await,
            NO_RUN,
            "",
            "",
        );
    }
    // The errors for a foreign and for an absent run differ only in the id.
    let message = async |id: &str| world.get(id).await.unwrap_err().message().replace(id, "…");
    assert_eq!(message(&world.foreign_run).await, message(absent).await);
    let other = world.other.tenant();
    let foreign = world
        .trigger(|request| request.tenant = other.to_owned())
        .await;
    refused(
        foreign,
        (Code::PermissionDenied, Reason::TenantMismatch),
        "",
        other,
    );
    let without_tenant = world
        .trigger(|request| request.tenant = String::new())
        .await
        .unwrap_err();
    assert!(
        matches!(
            without_tenant.code(),
            Code::PermissionDenied | Code::InvalidArgument
        ),
        "{without_tenant:?}"
    );

    assert_eq!(world.rows().await, before, "events, keys, runs, tasks, …");
}

#[tokio::test]
async fn inv_17_foreign_deployments_tasks_workers_and_pools_are_not_found() {
    let world = World::start().await;
    let client = &world.user.client;
    let before = world.rows().await;

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
        let request = world
            .trigger(|request| spec(request).deployment_id = id.to_owned())
            .await;
        refused(request, NO_DEPLOYMENT, "", "");
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
        tenant: world.tenant(),
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
    for worker_id in [world.foreign_worker.as_str(), "01JD0000000000000000000009"] {
        let (tenant, worker_id) = (world.tenant(), worker_id.to_owned());
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
    for pool in [FOREIGN_POOL, "absent"] {
        let (tenant, pool) = (world.tenant(), pool.to_owned());
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

    assert_eq!(world.rows().await, before, "events, pools, workers, …");
}

/// Asserts that sizes one below and at the limit are accepted, and that one above is refused with
/// the number.
async fn check_limit<T: std::fmt::Debug>(
    what: &str,
    limit: usize,
    call: impl AsyncFn(usize) -> Result<Response<T>, Status>,
) {
    for size in [limit - 1, limit] {
        let accepted = call(size).await;
        assert!(accepted.is_ok(), "{what} of {size}: {accepted:?}");
    }
    let refused = call(limit + 1)
        .await
        .expect_err(&format!("{what} of {} was accepted", limit + 1));
    assert_eq!(refused.code(), Code::InvalidArgument, "{what}: {refused:?}");
    let Error::Refused {
        message,
        violations,
        ..
    } = Error::from(refused)
    else {
        panic!("{what}: not a refusal")
    };
    let descriptions: String = violations
        .iter()
        .map(|violation| violation.description.as_str())
        .collect();
    let named = [limit, limit + 1].map(|number| number.to_string());
    let digits: String = format!("{message} {descriptions}").replace(['_', ',', '\u{202f}'], "");
    assert!(
        named.iter().any(|number| digits.contains(number)),
        "{what}: {message} {descriptions}"
    );
}

/// `{"a":"xx…"}` with this number of bytes.
fn config_of(bytes: usize) -> String {
    format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - r#"{"a":""}"#.len()))
}

#[tokio::test]
async fn f35_every_limit_of_a_request_holds_exactly() {
    use servo_model::limits;
    let world = World::start().await;
    let plain = |key: &str| asset(key, &[], "");
    let text = |length: usize| "x".repeat(length);

    check_limit("run_key", limits::RUN_KEY_BYTES_MAX, async |length| {
        world
            .trigger(|request| request.run_key = text(length))
            .await
    })
    .await;
    check_limit("request_id", 128, async |length| {
        world
            .trigger(|request| request.request_id = text(length))
            .await
    })
    .await;
    check_limit(
        "spec.config_json",
        limits::CONFIGS_PER_TASK_BYTES_MAX,
        async |bytes| {
            world
                .trigger(|request| spec(request).config_json = config_of(bytes))
                .await
        },
    )
    .await;
    check_limit("spec.labels", 32, async |count| {
        let labels = (0..count)
            .map(|n| (format!("l{n}"), "x".to_owned()))
            .collect();
        world.trigger(|request| spec(request).labels = labels).await
    })
    .await;
    check_limit("a label", 256, async |length| {
        world
            .trigger(|request| drop(spec(request).labels.insert("l".to_owned(), text(length))))
            .await
    })
    .await;
    check_limit("a namespace", limits::NAME_BYTES_MAX, async |length| {
        world
            .deploy(vec![plain(&format!("{}/a", text(length)))])
            .await
    })
    .await;
    check_limit(
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
    check_limit("static values", limits::STATIC_VALUES_MAX, async |count| {
        world.deploy(partitioned_fan_out(count).assets).await
    })
    .await;
    check_limit(
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
    check_limit("assets", limits::ASSETS_PER_MANIFEST_MAX, async |count| {
        world
            .deploy((0..count).map(|n| plain(&format!("n/t{n}"))).collect())
            .await
    })
    .await;
}

/// A dimension with one value and without a name.
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
