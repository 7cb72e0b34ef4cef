//! Permissions: calls every public method as every kind of caller and compares the answers with the
//! table of permissions.
//!
//! `access/requests.json` has a request for each method. A method without one fails the test.

mod fuzz;
pub(crate) mod raw_call;

use std::collections::BTreeMap;

use prost_reflect::DynamicMessage;
use serde::Deserialize;
use serde_json::Value;
use servo_client::api;
use servo_local::CONFINED_WORKSPACE;
use servo_mesh::Reason;
use servo_mesh::error::{name, reason_of};
use servo_model::{Grants, Permission, Role};
use servo_proto::access::{Access, Method, methods};
use servo_proto::scope::{ScopeKind, kind_of};
use servo_tests::manifest::asset;
use servo_tests::running::SharedMesh;
use servo_tests::user::{User, WORKSPACE};
use sqlx::{Connection, PgConnection, Row};
use tonic::transport::Channel;
use tonic::{Code, Status};
use ulid::Ulid;

use self::raw_call::{call, encode, gateway};
use crate::support::Running;

const REQUESTS: &str = include_str!("access/requests.json");

/// The request of a method, with `$words` for the ids of objects.
#[derive(Debug, Deserialize)]
struct Fixture {
    request: Value,
    /// The answer to a caller with the permission in another workspace, for methods that check the
    /// workspaces themselves.
    confined: Option<String>,
}

fn fixtures() -> BTreeMap<String, Fixture> {
    serde_json::from_str(REQUESTS).expect("access/requests.json")
}

fn public_methods() -> impl Iterator<Item = &'static Method> {
    methods()
        .iter()
        .filter(|method| !matches!(method.access, Access::Callers(_)))
}

fn short_path(method: &Method) -> &str {
    method.path.trim_start_matches("/servo.v1.")
}

#[test]
fn every_public_method_has_a_request() {
    let fixtures = fixtures();
    let known: Vec<&str> = fixtures.keys().map(String::as_str).collect();
    let mut expected: Vec<&str> = public_methods().map(short_path).collect();
    expected.sort_unstable();
    assert_eq!(known, expected);
}

/// A kind of caller.
#[derive(Debug, Clone, Copy)]
enum Principal {
    /// A key of the tenant that the request names, for all workspaces.
    Own(Role),
    /// A key of another tenant.
    Foreign(Role),
    /// A key of the tenant for another workspace.
    Confined(Role),
    PlatformOperator,
    UnknownKey,
    NoKey,
}

impl Principal {
    fn all() -> impl Iterator<Item = Principal> {
        let roles = Role::ALL.iter().flat_map(|role| {
            [
                Principal::Own(*role),
                Principal::Foreign(*role),
                Principal::Confined(*role),
            ]
        });
        roles.chain([
            Principal::PlatformOperator,
            Principal::UnknownKey,
            Principal::NoKey,
        ])
    }

    /// The reason of the refusal by the table and the scope, or `None` when the call is allowed.
    fn refusal(self, method: &Method, fixture: &Fixture) -> Option<Reason> {
        let Access::Permission(permission) = method.access else {
            return None;
        };
        let kind = kind_of(&method.path).unwrap();
        match self {
            Principal::NoKey => Some(Reason::CredentialsMissing),
            Principal::UnknownKey => Some(Reason::CredentialsInvalid),
            Principal::PlatformOperator => None,
            Principal::Foreign(_) if kind != ScopeKind::Unscoped => Some(Reason::TenantMismatch),
            Principal::Confined(_) if kind == ScopeKind::Workspace => {
                Some(Reason::WorkspaceMismatch)
            }
            Principal::Confined(_) if kind == ScopeKind::Tenant && !method.confined => {
                Some(Reason::WorkspaceMismatch)
            }
            Principal::Confined(role) if holds(role, permission) => confined_refusal(fixture),
            Principal::Own(role) | Principal::Foreign(role) | Principal::Confined(role) => {
                (!holds(role, permission)).then_some(Reason::PermissionDenied)
            }
        }
    }
}

fn holds(role: Role, permission: Permission) -> bool {
    Grants::of_role(role).contains(permission)
}

fn confined_refusal(fixture: &Fixture) -> Option<Reason> {
    match fixture.confined.as_deref() {
        None | Some("OK") => None,
        Some(reason) => Reason::from_str_name(&format!("ERROR_REASON_{reason}")),
    }
}

/// Two tenants; the first one has an object of every kind that the services create so far.
struct World {
    running: SharedMesh,
    channel: Channel,
    other: String,
    ids: BTreeMap<&'static str, String>,
}

impl World {
    async fn new() -> World {
        let running = Running::shared().await;
        let user = running.user();
        let other = running.other_user().tenant().to_owned();
        let ids = create_objects(&user).await;
        World {
            channel: gateway(&running.mesh),
            running,
            other,
            ids,
        }
    }

    fn key(&self, principal: Principal) -> Option<&str> {
        let (mesh, tenant) = (&self.running.mesh, self.running.tenant());
        match principal {
            Principal::Own(role) => Some(mesh.key_of_role(tenant, role)),
            Principal::Foreign(role) => Some(mesh.key_of_role(&self.other, role)),
            Principal::Confined(role) => Some(mesh.confined_key(tenant, role)),
            Principal::PlatformOperator => Some(mesh.platform_key()),
            Principal::UnknownKey => Some("servo_unknown"),
            Principal::NoKey => None,
        }
    }

    async fn call(
        &self,
        method: &Method,
        key: Option<&str>,
        tenant: &str,
        request: &Value,
        ids: &BTreeMap<&'static str, String>,
    ) -> Result<Option<DynamicMessage>, Status> {
        let request_id = Ulid::generate().to_string();
        let fields = [
            ("tenant", tenant),
            ("workspace", WORKSPACE),
            ("request_id", request_id.as_str()),
        ];
        let message = encode(method, &with_ids(request, ids), &fields);
        let answer = call(&self.channel, method, key, message).await?;
        Ok(answer.map(|bytes| {
            let output = output(method);
            DynamicMessage::decode(output, bytes).expect("a response")
        }))
    }

    /// All rows of the first tenant, as one text per table.
    async fn rows(&self) -> BTreeMap<String, String> {
        let mut database = PgConnection::connect(self.running.mesh.admin_url())
            .await
            .unwrap();
        let tables = sqlx::query(
            "SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.columns \
             JOIN information_schema.tables USING (table_schema, table_name) \
             WHERE column_name = 'tenant' AND table_type = 'BASE TABLE'",
        );
        let mut rows = BTreeMap::new();
        for table in tables.fetch_all(&mut database).await.unwrap() {
            let table: String = table.get("name");
            let content = format!(
                "SELECT coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '') FROM {table} t WHERE tenant = $1"
            );
            let content: String = sqlx::query_scalar(sqlx::AssertSqlSafe(content))
                .bind(self.running.tenant())
                .fetch_one(&mut database)
                .await
                .unwrap();
            rows.insert(table, content);
        }
        rows
    }
}

fn output(method: &Method) -> prost_reflect::MessageDescriptor {
    let service = servo_proto::descriptors()
        .get_service_by_name(&method.service)
        .unwrap();
    let method = service.methods().find(|each| each.name() == method.name);
    method.unwrap().output()
}

/// Replaces `$words` in a request.
fn with_ids(request: &Value, ids: &BTreeMap<&'static str, String>) -> Value {
    match request {
        Value::String(text) => match text.strip_prefix('$') {
            Some(word) => Value::String(ids[word].clone()),
            None => request.clone(),
        },
        Value::Array(items) => items.iter().map(|item| with_ids(item, ids)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            Value::Object(
                fields
                    .map(|(name, value)| (name.clone(), with_ids(value, ids)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

async fn create_objects(user: &User) -> BTreeMap<&'static str, String> {
    let tenant = user.tenant().to_owned();
    let manifest = api::Manifest {
        format: 1,
        assets: vec![asset("shop/orders", &[], "")],
        ..Default::default()
    };
    let deployed = user.deploy(manifest).await.unwrap();
    let run = user.trigger(&["shop/orders"]).await.unwrap();
    let tasks = user.tasks(&run.run_id).await.unwrap();
    let worker = Ulid::generate().to_string();
    let register = api::RegisterWorkerRequest {
        tenant: tenant.clone(),
        worker_id: worker.clone(),
        session: "s-1".to_owned(),
        info: Some(api::WorkerInfo {
            name: "first".to_owned(),
            slots: 1,
            workspaces: vec![WORKSPACE.to_owned()],
            ..Default::default()
        }),
    };
    user.client
        .dispatcher()
        .register_worker(register)
        .await
        .unwrap();
    user.create_pool("secret-pool", 1).await.unwrap();
    let pause = api::PauseDispatchRequest {
        tenant: tenant.clone(),
        request_id: "pause".to_owned(),
        workspace: WORKSPACE.to_owned(),
        ..Default::default()
    };
    let paused = user
        .client
        .dispatcher()
        .pause_dispatch(pause)
        .await
        .unwrap();
    let pause = paused.into_inner().pause.unwrap().pause_id;
    let ulid = || Ulid::generate().to_string();
    let deployment = deployed.deployment.unwrap();
    BTreeMap::from([
        ("workspace", WORKSPACE.to_owned()),
        ("asset", "shop/orders".to_owned()),
        ("namespace", "shop".to_owned()),
        ("name", "orders".to_owned()),
        ("deployment", deployment.deployment_id),
        ("plan", run.plan_id.clone()),
        ("task", tasks[0].task_id.clone()),
        ("run", run.run_id),
        ("attempt", "0".repeat(26)),
        ("worker", worker),
        ("new_worker", ulid()),
        ("pool", "secret-pool".to_owned()),
        ("budget", ulid()),
        ("pause", pause),
        ("digest", "0".repeat(64)),
        ("ulid", ulid()),
    ])
}

/// Whether a status refuses the caller, rather than its request.
fn is_refusal(reason: Option<Reason>) -> bool {
    matches!(
        reason,
        Some(
            Reason::CredentialsMissing
                | Reason::CredentialsInvalid
                | Reason::PermissionDenied
                | Reason::CallerNotAllowed
                | Reason::TenantMismatch
                | Reason::WorkspaceMismatch
        )
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_is_open_to_exactly_those_who_hold_its_permission() {
    let world = World::new().await;
    let tenant = world.running.tenant().to_owned();
    let fixtures = fixtures();
    let before = world.rows().await;
    let mut wrong = Vec::new();
    // All refused calls come first, so that any change of the tenant's rows is theirs.
    for refused in [true, false] {
        for method in public_methods() {
            let fixture = &fixtures[short_path(method)];
            for principal in Principal::all() {
                let expected = principal.refusal(method, fixture);
                if expected.is_some() != refused {
                    continue;
                }
                let key = world.key(principal);
                let answer = world
                    .call(method, key, &tenant, &fixture.request, &world.ids)
                    .await;
                if let Some(fault) = fault(&answer, expected) {
                    wrong.push(format!("{} as {principal:?}: {fault}", short_path(method)));
                }
            }
        }
        if refused {
            let after = world.rows().await;
            for (table, rows) in &before {
                assert_eq!(&after[table], rows, "{table} was changed by a refused call");
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} calls:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Describes an answer that is not the expected one.
fn fault(
    answer: &Result<Option<DynamicMessage>, Status>,
    expected: Option<Reason>,
) -> Option<String> {
    let status = match answer {
        Ok(_) if expected.is_none() => return None,
        Ok(_) => return Some(format!("allowed, {expected:?} expected")),
        Err(status) => status,
    };
    let reason = reason_of(status);
    let fine = match expected {
        Some(_) => reason == expected,
        None => !is_refusal(reason) && !matches!(status.code(), Code::Internal | Code::Unknown),
    };
    (!fine).then(|| format!("{expected:?} expected: {status}"))
}

/// For each method with the id of an object: an administrator of another tenant who names it gets
/// the same answer as for an object that does not exist.
#[tokio::test(flavor = "multi_thread")]
async fn object_of_another_tenant_answers_like_a_missing_one() {
    let world = World::new().await;
    let key = world.running.mesh.api_key_of(&world.other).to_owned();
    let mut missing = world.ids.clone();
    missing.insert("run", "run_aaaaaaaaaaaaaaaaaaaaaaaaaa".to_owned());
    missing.insert("task", format!("task_{}", "a".repeat(26)));
    missing.insert("plan", "1".repeat(64));
    missing.insert("deployment", Ulid::generate().to_string());
    missing.insert("worker", Ulid::generate().to_string());
    missing.insert("pause", format!("pause_{}", "0".repeat(26)));
    missing.insert("pool", "no-such-pool".to_owned());
    missing.insert("asset", "shop/missing".to_owned());
    missing.insert("name", "missing".to_owned());
    let fixtures = fixtures();
    let mut compared = 0;
    for method in public_methods() {
        let request = &fixtures[short_path(method)].request;
        let makes_it = ["CreatePool", "RegisterWorker"].contains(&method.name.as_str());
        if with_ids(request, &world.ids) == with_ids(request, &missing) || makes_it {
            continue;
        }
        let answers = [&world.ids, &missing].map(async |ids| {
            let answer = world
                .call(method, Some(&key), &world.other, request, ids)
                .await;
            describe(answer, ids)
        });
        let [foreign, absent] = futures::future::join_all(answers).await.try_into().unwrap();
        assert_eq!(foreign, absent, "{}", method.path);
        compared += 1;
    }
    assert!(compared >= 20, "only {compared} methods name an object");
}

/// An answer without the ids that were sent.
fn describe(
    answer: Result<Option<DynamicMessage>, Status>,
    ids: &BTreeMap<&'static str, String>,
) -> String {
    let text = match answer {
        Ok(message) => message
            .map(|message| message.to_string())
            .unwrap_or_default(),
        Err(status) => format!("{:?} {}", reason_of(&status).map(name), status.message()),
    };
    // Longer values first, because some are part of others.
    let mut values: Vec<(&str, &String)> = ids.iter().map(|(name, id)| (*name, id)).collect();
    values.sort_by_key(|(_, id)| std::cmp::Reverse(id.len()));
    let replace = |text: String, (name, id): (&str, &String)| text.replace(id.as_str(), name);
    values.into_iter().fold(text, replace)
}

/// A worker that a confined key may register works in that workspace alone, and the key sees and
/// stops nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn confined_key_acts_in_its_workspace() {
    let world = World::new().await;
    let tenant = world.running.tenant().to_owned();
    let key = world
        .running
        .mesh
        .confined_key(&tenant, Role::Admin)
        .to_owned();
    let method = |name: &str| {
        let found = public_methods().find(|method| method.name == name);
        found.expect("a method")
    };
    let call = async |name: &str, request: Value| {
        world
            .call(method(name), Some(&key), &tenant, &request, &world.ids)
            .await
    };
    let worker = Ulid::generate().to_string();
    let info = |workspaces: &[&str]| {
        serde_json::json!({"worker_id": worker, "session": "s",
            "info": {"name": "mine", "slots": 1, "workspaces": workspaces}})
    };
    let refused = call("RegisterWorker", info(&[])).await.unwrap_err();
    assert_eq!(
        reason_of(&refused),
        Some(Reason::WorkspaceMismatch),
        "{refused}"
    );
    let mixed = call("RegisterWorker", info(&[CONFINED_WORKSPACE, WORKSPACE])).await;
    assert_eq!(
        reason_of(&mixed.unwrap_err()),
        Some(Reason::WorkspaceMismatch)
    );
    call("RegisterWorker", info(&[CONFINED_WORKSPACE]))
        .await
        .unwrap();
    let listed = call("ListWorkers", serde_json::json!({}))
        .await
        .unwrap()
        .unwrap()
        .to_string();
    assert!(
        listed.contains("mine") && !listed.contains("first"),
        "{listed}"
    );
    let pauses = call("ListDispatchPauses", serde_json::json!({}))
        .await
        .unwrap()
        .unwrap();
    assert!(!pauses.to_string().contains(WORKSPACE), "{pauses}");
    let everywhere = call("PauseDispatch", serde_json::json!({"workspace": ""})).await;
    assert_eq!(
        reason_of(&everywhere.unwrap_err()),
        Some(Reason::WorkspaceMismatch)
    );
    let own = serde_json::json!({"workspace": CONFINED_WORKSPACE});
    call("PauseDispatch", own).await.unwrap();
    call("DrainWorker", serde_json::json!({"worker_id": worker}))
        .await
        .unwrap();
}
