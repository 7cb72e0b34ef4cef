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
    sqlx::query_scalar(counts).fetch_one(&mut connection).await.unwrap()
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
    let Error::Refused { code: told, reason: why, message, violations, .. } = Error::from(status.clone())
    else {
        panic!("no refusal: {status:?}")
    };
    assert_eq!((told, why), (code, Some(reason)), "{status:?}");
    let fields: Vec<&str> = violations.iter().map(|violation| violation.field.as_str()).collect();
    assert!(field.is_empty() || fields.contains(&field), "`{field}` is not among {fields:?}: {message}");
    let told: String = violations.iter().map(|violation| violation.description.as_str()).collect();
    assert!(message.contains(words) || told.contains(words), "`{words}` is missing: {message} {told}");
}

const INVALID: (Code, Reason) = (Code::InvalidArgument, Reason::InvalidField);
const MANIFEST: (Code, Reason) = (Code::InvalidArgument, Reason::ManifestInvalid);
const NO_RUN: (Code, Reason) = (Code::NotFound, Reason::RunNotFound);

/// A mesh with something deployed and one run of the other tenant.
struct World {
    running: Running,
    user: User,
    foreign_run: String,
}

impl World {
    async fn start() -> World {
        let running = Running::start_with(|options| options.tenant(OTHER)).await;
        let user = User::of(&running.mesh).unwrap();
        let other = User::at(&running.mesh, 0, OTHER).unwrap();
        let mut manifest_with_hours = partitioned_fan_out(3);
        manifest_with_hours.assets.push(hourly());
        user.deploy(manifest_with_hours).await.unwrap();
        other.deploy(manifest(vec![asset("n/a", &[], "")])).await.unwrap();
        let foreign_run = other.trigger(&["n/a"]).await.unwrap().run_id;
        World { running, user, foreign_run }
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
        let spec = api::RunSpec { selection: vec!["fan/root".to_owned()], ..Default::default() };
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
        self.trigger(|asked| spec(asked).selection = vec![selection.to_owned()]).await
    }

    async fn partition(&self, asset: &str, key: &str) -> Result<Response<api::TriggerRunResponse>, Status> {
        let keys = api::PartitionKeys { keys: vec![key.to_owned()] };
        let wanted = api::partition_selection::Partitions::Keys(keys);
        self.trigger(|asked| {
            spec(asked).selection = vec![asset.to_owned()];
            spec(asked).partitions = Some(api::PartitionSelection { partitions: Some(wanted), only: 0 });
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

/// Cut into the hours of one year.
fn hourly() -> api::AssetDefinition {
    let hours = api::TimeGrid {
        grain: api::TimeGrain::Hour.into(),
        start: "2025-01-01T00:00:00Z".to_owned(),
        end: "2026-01-01T00:00:00Z".to_owned(),
        ..Default::default()
    };
    let values = Some(api::partition_dimension::Values::Time(hours));
    let dimensions = vec![api::PartitionDimension { name: "hour".to_owned(), values }];
    let partitions = Some(api::PartitionsDefinition { dimensions });
    api::AssetDefinition { partitions, ..asset("fan/hourly", &[], "") }
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
    refused(unknown, MANIFEST, "assets[0].dependencies[0].upstream", "n/z");
    let twice = world.deploy(vec![plain("n/a", &[]), plain("n/a", &[])]).await;
    refused(twice, MANIFEST, "assets[1].key", "n/a");
    refused(world.deploy(vec![plain("Nonsense", &[])]).await, MANIFEST, "assets[0].key", "Nonsense");
    refused(world.deploy(vec![plain("", &[])]).await, MANIFEST, "assets[0].key", "");
    let circle = vec![plain("n/a", &["n/c"]), plain("n/b", &["n/a"]), plain("n/c", &["n/b"])];
    let cycle = (Code::InvalidArgument, Reason::CycleDetected);
    refused(world.deploy(circle).await, cycle, "", "n/a -> n/b -> n/c -> n/a");
    refused(world.deploy(vec![plain("n/a", &["n/a"])]).await, cycle, "", "n/a -> n/a");
    let too_large = (Code::InvalidArgument, Reason::MessageTooLarge);
    let wordy = api::AssetDefinition { description: long(), ..plain("n/a", &[]) };
    refused(world.deploy(vec![wordy]).await, too_large, "", "manifest_uri");
    let many = (0..10_001).map(|n| plain(&format!("n/t{n}"), &[])).collect();
    refused(world.deploy(many).await, MANIFEST, "assets", "10001");
    let typed = api::AssetDefinition { config_json: "{not json".to_owned(), ..plain("n/a", &[]) };
    refused(world.deploy(vec![typed]).await, MANIFEST, "assets[0].config_json", "");

    assert_eq!(rows(&world.running.mesh).await, before, "events, keys, deployments, …");
    world.running.mesh.stop().unwrap();
}

#[tokio::test]
async fn f35_bad_run_requests_are_refused_by_field_and_change_nothing() {
    let world = World::start().await;
    let before = rows(&world.running.mesh).await;
    let selection = (Code::InvalidArgument, Reason::SelectionInvalid);

    refused(world.select("fan/rot").await, selection, "spec.selection[0]", "did you mean");
    refused(world.select("+").await, selection, "spec.selection[0]", "");
    refused(world.select("").await, selection, "spec.selection[0]", "");
    refused(world.select(&long()).await, selection, "spec.selection[0]", "");
    refused(world.trigger(|asked| asked.spec = None).await, INVALID, "spec", "missing");
    refused(world.trigger(|asked| asked.run_key = long()).await, INVALID, "run_key", "");
    refused(world.trigger(|asked| asked.request_id = long()).await, INVALID, "request_id", "");
    let text = world.trigger(|asked| spec(asked).config_json = "{not json".to_owned()).await;
    refused(text, INVALID, "spec.config_json", "");
    let strange = world.trigger(|asked| spec(asked).deployment_id = "x".to_owned()).await;
    refused(strange, (Code::NotFound, Reason::DeploymentNotFound), "", "");
    let invalid = (Code::InvalidArgument, Reason::PartitionInvalid);
    let outside = (Code::OutOfRange, Reason::PartitionOutOfRange);
    let keys = "spec.partitions.keys";
    refused(world.partition("fan/part", "part=s:p99999").await, invalid, keys, "p99999");
    refused(world.partition("fan/part", "part=i:7").await, invalid, keys, "");
    let first = "spec.partitions.keys.keys[0]";
    refused(world.partition("fan/part", "nonsense").await, invalid, first, "");
    refused(world.partition("fan/part", &long()).await, invalid, first, "");
    refused(world.partition("fan/hourly", "hour=t:2027-01-01T00:00:00Z").await, outside, keys, "2027");

    assert_eq!(rows(&world.running.mesh).await, before, "events, keys, runs, tasks, …");
    world.running.mesh.stop().unwrap();
}

#[tokio::test]
async fn inv_17_ids_of_others_and_ids_of_nobody_get_the_same_answer() {
    let world = World::start().await;
    let before = rows(&world.running.mesh).await;
    let nobody = "run_aaaaaaaaaaaaaaaaaaaaaaaaaa";
    let long = long();
    for id in [nobody, &world.foreign_run, "", "run_", "RUN_AAAA", "0", &long] {
        refused(world.get(id).await, NO_RUN, "", "");
        let asked = api::CancelRunRequest {
            tenant: TENANT.to_owned(),
            workspace: WORKSPACE.to_owned(),
            run_id: id.to_owned(),
            ..Default::default()
        };
        refused(world.user.client.scheduler().cancel_run(asked).await, NO_RUN, "", "");
        let asked = api::ListTasksRequest {
            tenant: TENANT.to_owned(),
            workspace: WORKSPACE.to_owned(),
            run_id: id.to_owned(),
            ..Default::default()
        };
        refused(world.user.client.scheduler().list_tasks(asked).await, NO_RUN, "", "");
    }
    // What it says of a foreign run differs from what it says of none by the id alone.
    let said = async |id: &str| world.get(id).await.unwrap_err().message().replace(id, "…");
    assert_eq!(said(&world.foreign_run).await, said(nobody).await);
    let foreign = world.trigger(|asked| asked.tenant = OTHER.to_owned()).await;
    refused(foreign, (Code::PermissionDenied, Reason::TenantMismatch), "", OTHER);
    let nowhere = world.trigger(|asked| asked.tenant = String::new()).await.unwrap_err();
    assert!(matches!(nowhere.code(), Code::PermissionDenied | Code::InvalidArgument), "{nowhere:?}");

    assert_eq!(rows(&world.running.mesh).await, before, "events, keys, runs, tasks, …");
    world.running.mesh.stop().unwrap();
}
