use prost::Message;
use prost_types::Timestamp;
use servo_mesh::Reason;
use servo_model::{EventType, RunId, Service};
use servo_proto::mesh::v1::WatchLimitsRequest;
use servo_proto::v1::{
    Event, GetBudgetRequest, GetCostsRequest, GetCostsResponse, ListUsageRequest,
    ListUsageResponse, Plan, PlannedAsset, PlannedTask, ReportGrain, TaskFinished, TaskRef, Usage,
    event,
};
use servo_store::{DatabaseConfig, NewEvent, Store};
use uuid::Uuid;

use crate::money::{create, prices};
use crate::support::{TENANT, World, by, by_user, refused};

const ASSETS: [(&str, &str); 2] = [("n/a", ""), ("n/b", "db")];

/// Writes a run of the scheduler whose plan has one task per asset.
async fn run(world: &World, byte: u8) -> RunId {
    let run = RunId::from_bytes([byte; 16]);
    let asset = |(key, pool): &(&str, &str)| PlannedAsset {
        asset_key: (*key).into(),
        pool: (*pool).into(),
        ..Default::default()
    };
    let tasks = (0..2)
        .map(|asset| PlannedTask {
            asset,
            ..Default::default()
        })
        .collect();
    let plan = Plan {
        assets: ASSETS.iter().map(asset).collect(),
        tasks,
        ..Default::default()
    };
    let mut admin = world.admin().await;
    let sql = "INSERT INTO planner.plans (tenant, workspace, plan_id, plan) VALUES ('acme', 'prod', sha256('p'), $1)
        ON CONFLICT DO NOTHING";
    sqlx::query(sql)
        .bind(plan.encode_to_vec())
        .execute(&mut admin)
        .await
        .unwrap();
    let sql = "INSERT INTO scheduler.runs (tenant, workspace, run_id, run_number, shard, state, reason, version,
            generation, run_key, request, request_event_id, plan_id, created_at, changed_at)
        VALUES ('acme', 'prod', $1, $2, $3, 2, 1, 0, 1, 'k', '', gen_random_uuid(), sha256('p'), now(), now())";
    let statement = sqlx::query(sql)
        .bind(Uuid::from_bytes(*run.as_bytes()))
        .bind(i64::from(byte));
    statement
        .bind(run.shard())
        .execute(&mut admin)
        .await
        .unwrap();
    run
}

/// The outcome of an attempt of the run's task with this ordinal: it took two seconds and this CPU
/// time.
fn finished(run: RunId, ordinal: u32, cpu_ms: u64) -> NewEvent {
    let time = |seconds| Some(Timestamp { seconds, nanos: 0 });
    let body = TaskFinished {
        run_id: run.to_string(),
        task: Some(TaskRef {
            ordinal,
            map_index: None,
        }),
        start_time: time(100),
        end_time: time(102),
        usage: Some(Usage {
            cpu_ms,
            ..Default::default()
        }),
        ..Default::default()
    };
    let event = Event {
        version: 1,
        trace: None,
        body: Some(event::Body::TaskFinished(body)),
    };
    NewEvent {
        event_id: Uuid::from_u128(rand::random()),
        kind: EventType::TaskFinished,
        version: 1,
        shard: run.shard(),
        tenant: TENANT.parse().unwrap(),
        workspace: "prod".into(),
        idempotency_key: format!("finished:{}", rand::random::<u64>()),
        correlation_id: None,
        causation_id: None,
        payload: event.encode_to_vec(),
    }
}

fn scheduler(world: &World) -> Store {
    let config = DatabaseConfig::new(world.database.service_url(), world.database.password());
    Store::connect(Service::Scheduler, &config).unwrap()
}

fn report(group_by: &[&str]) -> ListUsageRequest {
    ListUsageRequest {
        tenant: TENANT.into(),
        start_time: Some(Timestamp {
            seconds: 0,
            nanos: 0,
        }),
        group_by: group_by.iter().map(ToString::to_string).collect(),
        ..Default::default()
    }
}

async fn usage(world: &World, request: ListUsageRequest) -> ListUsageResponse {
    world
        .client()
        .list_usage(by_user(request))
        .await
        .unwrap()
        .into_inner()
}

/// Waits until this number of attempts is counted.
async fn until_counted(world: &World, attempts: u64) {
    loop {
        let counted = usage(world, report(&[]))
            .await
            .lines
            .first()
            .map_or(0, |line| line.attempts);
        assert!(
            counted <= attempts,
            "{counted} of {attempts} attempts are counted"
        );
        if counted == attempts {
            return;
        }
    }
}

async fn costs(world: &World, filter: &str, group_by: &[&str]) -> GetCostsResponse {
    let request = GetCostsRequest {
        tenant: TENANT.into(),
        filter: filter.into(),
        start_time: Some(Timestamp {
            seconds: 0,
            nanos: 0,
        }),
        grain: ReportGrain::Month.into(),
        group_by: group_by.iter().map(ToString::to_string).collect(),
        ..Default::default()
    };
    world
        .client()
        .get_costs(by_user(request))
        .await
        .unwrap()
        .into_inner()
}

#[tokio::test]
async fn every_outcome_is_counted_once_by_several_instances() {
    let world = World::start_with(2, &[("quota.count_every", "10ms")]).await;
    let ledger = scheduler(&world);
    let runs = [
        run(&world, 1).await,
        run(&world, 2).await,
        run(&world, 3).await,
    ];
    for round in 1..=10 {
        let events: Vec<NewEvent> = (0..30)
            .map(|n| finished(runs[n % 3], u32::try_from(n % 2).unwrap(), 10))
            .collect();
        ledger.ledger().append(events).await.unwrap();
        until_counted(&world, round * 30).await;
    }
    let by_group = usage(&world, report(&["asset", "pool"])).await;
    let summary: Vec<_> = by_group
        .lines
        .iter()
        .map(|line| {
            let cpu_ms = line.usage.as_ref().unwrap().cpu_ms;
            (
                line.group["asset"].as_str(),
                line.group["pool"].as_str(),
                line.attempts,
                line.slot_ms,
                cpu_ms,
            )
        })
        .collect();
    assert_eq!(
        summary,
        [
            ("n/a", "", 150, 300_000, 1_500),
            ("n/b", "db", 150, 300_000, 1_500)
        ]
    );
    let filtered = ListUsageRequest {
        filter: "pool = db".into(),
        ..report(&[])
    };
    assert_eq!(usage(&world, filtered).await.lines[0].attempts, 150);
    let of_other_tenant = ListUsageRequest {
        tenant: "other".into(),
        ..report(&[])
    };
    let of_other_tenant = world
        .client()
        .list_usage(by("other", of_other_tenant))
        .await
        .unwrap()
        .into_inner();
    assert!(of_other_tenant.lines.is_empty());
}

#[tokio::test]
async fn usage_is_priced_by_the_price_list_and_spends_budgets() {
    let world = World::start_with(1, &[("quota.count_every", "10ms")]).await;
    let ledger = scheduler(&world);
    let mut client = world.client();
    let run = run(&world, 7).await;
    // An hour of a core costs 3.6 units, so a millisecond costs a millionth.
    client
        .update_prices(by_user(prices(TENANT, "USD", 3_600_000)))
        .await
        .unwrap();
    let budget = client
        .create_budget(by_user(create("all", 400)))
        .await
        .unwrap()
        .into_inner()
        .budget
        .unwrap();
    ledger
        .ledger()
        .append(vec![finished(run, 0, 100), finished(run, 1, 250)])
        .await
        .unwrap();
    until_counted(&world, 2).await;
    // Usage before the change keeps its old price.
    client
        .update_prices(by_user(prices(TENANT, "USD", 7_200_000)))
        .await
        .unwrap();
    ledger
        .ledger()
        .append(vec![finished(run, 0, 50)])
        .await
        .unwrap();
    until_counted(&world, 3).await;

    let total = costs(&world, "", &[]).await;
    assert_eq!((total.currency.as_str(), total.lines.len()), ("USD", 1));
    assert_eq!(
        (total.lines[0].compute_micros, total.lines[0].total_micros),
        (450, 450)
    );
    let by_asset = costs(&world, "workspace = prod", &["asset"]).await;
    let summary: Vec<_> = by_asset
        .lines
        .iter()
        .map(|l| (l.group["asset"].as_str(), l.total_micros))
        .collect();
    assert_eq!(summary, [("n/a", 200), ("n/b", 250)]);

    let request = GetBudgetRequest {
        tenant: TENANT.into(),
        budget_id: budget.budget_id,
    };
    let read = client
        .get_budget(by_user(request))
        .await
        .unwrap()
        .into_inner()
        .budget
        .unwrap();
    assert_eq!((read.spent_micros, read.limit_micros), (450, 400));
    let watch = WatchLimitsRequest {
        resume_token: String::new(),
    };
    let mut stream = world
        .internal_client(Service::Dispatcher, 0)
        .watch_limits(watch)
        .await
        .unwrap()
        .into_inner();
    loop {
        let message = stream.message().await.unwrap().unwrap();
        let ours = message
            .tenants
            .iter()
            .find(|tenant| tenant.tenant == TENANT);
        if ours.is_some_and(|ours| ours.budgets[0].spent_micros == 450) {
            break;
        }
    }
}

#[tokio::test]
async fn a_report_is_paged_and_refuses_invalid_requests() {
    let world = World::start_with(1, &[("quota.count_every", "10ms")]).await;
    let run = run(&world, 9).await;
    let events = vec![
        finished(run, 0, 1),
        finished(run, 1, 1),
        finished(RunId::from_bytes([8; 16]), 0, 1),
    ];
    scheduler(&world).ledger().append(events).await.unwrap();
    until_counted(&world, 3).await;
    let (mut assets, mut token) = (Vec::new(), String::new());
    loop {
        let request = ListUsageRequest {
            page_size: 1,
            page_token: token,
            ..report(&["asset"])
        };
        let page = usage(&world, request).await;
        assets.extend(
            page.lines
                .into_iter()
                .map(|line| line.group["asset"].clone()),
        );
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    // The run without a row has no plan, so its asset is unknown.
    assert_eq!(assets, ["", "n/a", "n/b"]);
    let mut client = world.client();
    let mut refuse = async |request: ListUsageRequest, reason: Reason, part: &str| {
        refused(client.list_usage(by_user(request)).await, reason, part);
    };
    refuse(
        ListUsageRequest {
            start_time: None,
            ..report(&[])
        },
        Reason::InvalidField,
        "start_time",
    )
    .await;
    refuse(report(&["run"]), Reason::InvalidField, "group_by[0]").await;
    refuse(
        ListUsageRequest {
            grain: 9,
            ..report(&[])
        },
        Reason::InvalidField,
        "grain",
    )
    .await;
    let filter = ListUsageRequest {
        filter: "run_id = x".into(),
        ..report(&[])
    };
    refuse(
        filter,
        Reason::InvalidFilter,
        "`run_id` cannot be filtered by",
    )
    .await;
    let token = ListUsageRequest {
        page_token: "x".into(),
        ..report(&[])
    };
    refuse(token, Reason::InvalidPageToken, "page_token").await;
}

/// Postgres keeps a generic plan from when the ledger was small, so the statement must force the
/// join.
#[tokio::test]
async fn the_ledger_is_read_by_position_for_any_plan_of_postgres() {
    let world = World::start().await;
    let mut admin = world.admin().await;
    sqlx::query("SET enable_nestloop = off")
        .execute(&mut admin)
        .await
        .unwrap();
    let spans = "ARRAY[1]::smallint[], ARRAY[5]::bigint[], ARRAY[9]::bigint[]";
    for (name, statement, arguments) in [
        (
            "outcomes",
            include_str!("../../src/store/sql/finished_attempts.sql"),
            format!("1, 7, {spans}"),
        ),
        (
            "tenants",
            include_str!("../../src/store/sql/changed_tenants.sql"),
            format!("1, {spans}"),
        ),
    ] {
        let prepare = format!("PREPARE {name} AS {statement}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(prepare))
            .execute(&mut admin)
            .await
            .unwrap();
        let explain = sqlx::AssertSqlSafe(format!("EXPLAIN EXECUTE {name} ({arguments})"));
        let plan: Vec<String> = sqlx::query_scalar(explain)
            .fetch_all(&mut admin)
            .await
            .unwrap();
        let found_by: Vec<&String> = plan
            .iter()
            .filter(|line| line.contains("Index Cond"))
            .collect();
        assert!(
            !found_by.is_empty() && found_by.iter().all(|by| by.contains("position")),
            "{plan:#?}"
        );
    }
}
