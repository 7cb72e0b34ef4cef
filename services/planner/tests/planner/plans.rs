use prost::Message;
use servo_mesh::Reason;
use servo_model::Service;
use servo_proto::mesh::v1::plan_result::Result as Outcome;
use servo_proto::mesh::v1::{MakePlansRequest, PlanOrder, PlanRefusal, StoredPlan};
use servo_proto::v1::{GetPlanRequest, Plan, PlanRunRequest, RunSpec};
use sqlx::{Connection, PgConnection};

use crate::support::{TENANT, WORKSPACE, World, by_user, by_user_of, chain, refused};

fn spec(selection: &[&str]) -> RunSpec {
    RunSpec {
        selection: selection.iter().map(ToString::to_string).collect(),
        ..Default::default()
    }
}

fn order(selection: &[&str]) -> PlanOrder {
    PlanOrder {
        tenant: TENANT.into(),
        workspace: WORKSPACE.into(),
        spec: Some(spec(selection)),
        ..Default::default()
    }
}

async fn make(world: &World, orders: Vec<PlanOrder>) -> Vec<Outcome> {
    let answer = world
        .scheduler()
        .make_plans(MakePlansRequest { orders })
        .await
        .unwrap()
        .into_inner();
    answer
        .results
        .into_iter()
        .map(|result| result.result.unwrap())
        .collect()
}

#[track_caller]
fn plan(outcome: &Outcome) -> &StoredPlan {
    match outcome {
        Outcome::Plan(plan) => plan,
        Outcome::Refusal(refusal) => panic!("{refusal:?}"),
    }
}

#[track_caller]
fn refusal(outcome: &Outcome) -> &PlanRefusal {
    match outcome {
        Outcome::Refusal(refusal) => refusal,
        Outcome::Plan(plan) => panic!("{plan:?}"),
    }
}

#[tokio::test]
async fn plans_are_stored_once_under_their_ids() {
    let world = World::start().await;
    world.deploy(chain()).await;
    let outcomes = make(
        &world,
        vec![order(&["*"]), order(&["n/a"]), order(&["n.*"])],
    )
    .await;
    let (whole, part, again) = (plan(&outcomes[0]), plan(&outcomes[1]), plan(&outcomes[2]));
    assert_eq!((whole.task_count, part.task_count), (3, 1));
    assert_eq!(
        whole.plan_id, again.plan_id,
        "the same tasks are the same plan"
    );
    assert_ne!(whole.plan_id, part.plan_id);
    assert_eq!(world.count("plans").await, 2);
    let repeated = make(&world, vec![order(&["*"])]).await;
    assert_eq!(plan(&repeated[0]), whole);
    assert_eq!(world.count("plans").await, 2);

    // Other services read the plan from this table.
    let mut connection = PgConnection::connect(&world.database.admin_url())
        .await
        .unwrap();
    let bytes: Vec<u8> =
        sqlx::query_scalar("SELECT plan FROM planner.plans WHERE encode(plan_id, 'hex') = $1")
            .bind(&whole.plan_id)
            .fetch_one(&mut connection)
            .await
            .unwrap();
    assert_eq!(
        Some(&Plan::decode(bytes.as_slice()).unwrap()),
        whole.plan.as_ref()
    );
}

#[tokio::test]
async fn an_invalid_order_does_not_affect_the_others() {
    let world = World::start().await;
    world.deploy(chain()).await;
    let of = |change: fn(&mut PlanOrder)| {
        let mut order = order(&["*"]);
        change(&mut order);
        order
    };
    let orders = vec![
        of(|order| order.tenant = "other".into()),
        of(|order| order.tenant = "Not A Tenant".into()),
        of(|order| order.workspace = "test".into()),
        of(|order| order.spec = None),
        of(|order| order.max_tasks = 2),
        of(|order| order.spec.as_mut().unwrap().selection = vec!["n/z".into()]),
        of(|order| {
            order.spec.as_mut().unwrap().deployment_id = "01JCZX5RA0000000000000000A".into()
        }),
        of(|order| order.only_task_keys = vec!["n/b:materialize".into()]),
    ];
    let outcomes = make(&world, orders).await;
    let reasons: Vec<Reason> = outcomes[..7]
        .iter()
        .map(|outcome| refusal(outcome).reason())
        .collect();
    let expected = [
        Reason::DeploymentNotFound,
        Reason::InvalidField,
        Reason::DeploymentNotFound,
        Reason::InvalidField,
        Reason::QuotaExceeded,
        Reason::AssetNotFound,
        Reason::DeploymentNotFound,
    ];
    assert_eq!(reasons, expected);
    assert_eq!(refusal(&outcomes[5]).field, "spec.selection[0]");
    assert_eq!(plan(&outcomes[7]).task_count, 1);
    assert_eq!(world.count("plans").await, 1);
}

#[tokio::test]
async fn many_orders_are_planned_together() {
    let world = World::start().await;
    world.deploy(chain()).await;
    let orders: Vec<PlanOrder> = (0..256)
        .map(|n| {
            let mut order = order(&["*"]);
            order.spec.as_mut().unwrap().config_json = n.to_string();
            order
        })
        .collect();
    let outcomes = make(&world, orders.clone()).await;
    assert!(outcomes.iter().all(|outcome| plan(outcome).task_count == 3));
    assert_eq!(world.count("plans").await, 256);
    let too_many = MakePlansRequest {
        orders: [orders, vec![order(&["*"])]].concat(),
    };
    refused(
        world.scheduler().make_plans(too_many).await,
        Reason::InvalidField,
        "257 orders",
    );
    let by_a_user = world
        .internal_client(Service::Gateway)
        .make_plans(by_user(MakePlansRequest::default()))
        .await;
    refused(by_a_user, Reason::CallerNotAllowed, "");
}

#[tokio::test]
async fn plan_run_stores_nothing_and_compares_plans() {
    let world = World::start().await;
    world.deploy(chain()).await;
    let stored = make(&world, vec![order(&["n/a"])]).await;
    let dry = |selection: &[&str], compare: &str, max_tasks| PlanRunRequest {
        tenant: TENANT.into(),
        workspace: WORKSPACE.into(),
        spec: Some(spec(selection)),
        max_tasks,
        compare_plan_id: compare.into(),
    };
    let mut client = world.client();
    let answer = client
        .plan_run(by_user(dry(&["*"], &plan(&stored[0]).plan_id, 2)))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (answer.task_count, answer.plan.unwrap().tasks.len()),
        (3, 2)
    );
    assert_eq!(
        answer.diff.unwrap().added_task_keys,
        ["n/b:materialize", "n/c:materialize"]
    );
    assert_eq!(world.count("plans").await, 1);
    let same = client
        .plan_run(by_user(dry(&["n/a"], "", 0)))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(same.plan.unwrap().plan_id, plan(&stored[0]).plan_id);
    refused(
        client.plan_run(by_user(dry(&["n/a"], "nonsense", 0))).await,
        Reason::PlanNotFound,
        "sha256",
    );
    refused(
        client.plan_run(by_user(dry(&["n/x"], "", 0))).await,
        Reason::AssetNotFound,
        "did you mean",
    );
}

#[tokio::test]
async fn plans_are_read_in_pages_by_their_own_tenant() {
    let world = World::start().await;
    world.deploy(chain()).await;
    let outcomes = make(&world, vec![order(&["*"])]).await;
    let id = plan(&outcomes[0]).plan_id.clone();
    let get = |tenant: &str, token: &str| GetPlanRequest {
        tenant: tenant.into(),
        workspace: WORKSPACE.into(),
        plan_id: id.clone(),
        page_size: 2,
        page_token: token.into(),
    };
    let mut client = world.client();
    let first = client
        .get_plan(by_user(get(TENANT, "")))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (
            first.task_count,
            first.first_ordinal,
            first.plan.unwrap().tasks.len()
        ),
        (3, 0, 2)
    );
    let second = client
        .get_plan(by_user(get(TENANT, &first.next_page_token)))
        .await
        .unwrap()
        .into_inner();
    let tasks = second.plan.unwrap().tasks;
    assert_eq!(
        (
            second.first_ordinal,
            tasks[0].task_key.as_str(),
            tasks[0].upstream[0]
        ),
        (2, "n/c:materialize", 1)
    );
    assert!(second.next_page_token.is_empty());
    refused(
        client.get_plan(by_user_of("other", get("other", ""))).await,
        Reason::PlanNotFound,
        "there is no plan",
    );
}

/// Writes the row that the scheduler writes once `asset` was materialized at `second`.
async fn materialized(world: &World, asset: &str, second: f64) {
    let mut connection = PgConnection::connect(&world.database.admin_url())
        .await
        .unwrap();
    sqlx::query(
        "INSERT INTO scheduler.partitions (tenant, workspace, asset_key, partition_key, attempt_id, attempted_at,
             attempt_run, attempt_state, materialization_id, materialized_at, materialized_run, code_version)
         VALUES ($1, $2, $3, '', gen_random_uuid(), to_timestamp($4), 1, 8, gen_random_uuid(), to_timestamp($4), 1, '')",
    )
    .bind(TENANT)
    .bind(WORKSPACE)
    .bind(asset)
    .bind(second)
    .execute(&mut connection)
    .await
    .unwrap();
}

#[tokio::test]
async fn up_to_date_tasks_are_marked_from_the_schedulers_rows() {
    let world = World::start().await;
    world.deploy(chain()).await;
    let current = || RunSpec {
        skip_up_to_date: true,
        ..spec(&["*"])
    };
    let preview = async || {
        let request = PlanRunRequest {
            tenant: TENANT.into(),
            workspace: WORKSPACE.into(),
            spec: Some(current()),
            ..Default::default()
        };
        world
            .client()
            .plan_run(by_user(request))
            .await
            .unwrap()
            .into_inner()
    };
    assert_eq!(preview().await.up_to_date_count, 0);
    materialized(&world, "n/a", 1.0).await;
    materialized(&world, "n/b", 2.0).await;
    let shown = preview().await;
    assert_eq!((shown.task_count, shown.up_to_date_count), (3, 2));
    // The statuses of one order do not leak into another order of the same call.
    let orders = vec![
        PlanOrder {
            spec: Some(current()),
            ..order(&[])
        },
        order(&["*"]),
    ];
    let outcomes = make(&world, orders).await;
    assert_eq!(plan(&outcomes[0]).plan_id, shown.plan.unwrap().plan_id);
    assert_ne!(plan(&outcomes[0]).plan_id, plan(&outcomes[1]).plan_id);
    let plain = plan(&outcomes[1]).plan.as_ref().unwrap();
    assert!(plain.tasks.iter().all(|task| !task.up_to_date));
}
