//! CountRuns: what a tenant uses of its limits on runs.

use servo_mesh::Error;
use servo_proto::mesh::v1 as mesh_pb;

use super::Scheduler;
use super::support::{errors, parse};
use crate::store::limits::{self, TenantRuns};

/// How many runs of a day are counted. The exact number above this is not needed.
const TODAY_MAX: i64 = 1_000_000;

pub(super) async fn count_runs(
    scheduler: &Scheduler,
    request: mesh_pb::CountRunsRequest,
) -> Result<mesh_pb::CountRunsResponse, Error> {
    let tenant = parse::tenant(&request.tenant)?;
    let mut tx = scheduler
        .reads
        .store
        .requests()
        .begin(&tenant)
        .await
        .map_err(errors::store)?;
    let TenantRuns { in_use, backfills } = limits::count_tenant_runs(&mut tx, &tenant, TODAY_MAX)
        .await
        .map_err(errors::store)?;
    tx.commit().await.map_err(errors::store)?;
    Ok(mesh_pb::CountRunsResponse {
        concurrent: in_use.concurrent,
        waiting: in_use.waiting,
        today: in_use.today,
        backfills,
    })
}

#[cfg(test)]
mod tests {
    use servo_local::TestDatabase;
    use servo_model::Service;
    use servo_model::states::RunState;
    use servo_store::{DatabaseConfig, Store, query};

    use super::*;
    use crate::store::shards::all_shards;

    /// Tenant, workspace, run key, state, and how many days ago the run was accepted.
    type Run = (&'static str, &'static str, &'static str, RunState, i32);

    const RUNS: [Run; 8] = [
        ("acme", "prod", "a", RunState::Running, 0),
        ("acme", "dev", "b", RunState::Paused, 2),
        ("acme", "prod", "backfill:x:chunk:1", RunState::Running, 0),
        ("acme", "prod", "backfill:x:chunk:2", RunState::Pending, 0),
        ("acme", "dev", "c", RunState::Pending, 0),
        ("acme", "prod", "d", RunState::Succeeded, 0),
        ("acme", "prod", "e", RunState::Succeeded, 2),
        ("beta", "prod", "f", RunState::Running, 0),
    ];

    async fn store_with_runs(database: &TestDatabase) -> Store {
        let config = DatabaseConfig::new(database.service_url(), database.password().to_owned());
        let store = Store::connect(Service::Scheduler, &config).unwrap();
        let insert = "INSERT INTO scheduler.runs (tenant, workspace, run_key, state, created_at, changed_at, started_at, \
                          run_id, run_number, shard, reason, version, generation, request, request_event_id) \
                      SELECT $1, $2, $3, $4::smallint, at, at, CASE WHEN $4::smallint > 1 THEN at END, \
                          gen_random_uuid(), $6::smallint, $6::smallint, 1, 1, 1, '', gen_random_uuid() \
                      FROM (SELECT now() - $5::integer * interval '1 day' AS at) AS accepted";
        for (number, (tenant, workspace, key, state, days)) in (0_i16..).zip(RUNS) {
            let run = query(insert)
                .bind(tenant)
                .bind(workspace)
                .bind(key)
                .bind(state.code())
                .bind(days);
            store.loops().execute(run.bind(number)).await.unwrap();
        }
        store
    }

    #[tokio::test]
    async fn open_runs_and_runs_of_today_are_counted_per_tenant() {
        let database = TestDatabase::create().await.unwrap();
        let store = store_with_runs(&database).await;
        let counted = async |tenant: &str, today_max| {
            let tenant = tenant.parse().unwrap();
            let mut tx = store.requests().begin(&tenant).await.unwrap();
            let runs = limits::count_tenant_runs(&mut tx, &tenant, today_max)
                .await
                .unwrap();
            [
                runs.in_use.concurrent,
                runs.in_use.waiting,
                runs.in_use.today,
                runs.backfills,
            ]
        };
        assert_eq!(counted("acme", TODAY_MAX).await, [3, 2, 5, 1]);
        assert_eq!(
            counted("acme", 4).await,
            [3, 2, 4, 1],
            "a day with very many runs is not counted to its end"
        );
        assert_eq!(counted("beta", TODAY_MAX).await, [1, 0, 1, 0]);
        assert_eq!(counted("nobody", TODAY_MAX).await, [0; 4]);
    }

    #[tokio::test]
    async fn runs_of_today_are_read_by_an_index_range() {
        let database = TestDatabase::create().await.unwrap();
        let store = store_with_runs(&database).await;
        let mut tx = store
            .requests()
            .begin(&"acme".parse().unwrap())
            .await
            .unwrap();
        // Postgres would scan so few rows.
        tx.execute(query("SET LOCAL enable_seqscan = off"))
            .await
            .unwrap();
        let explain = query(concat!(
            "EXPLAIN ",
            include_str!("../store/count_tenant_runs.sql")
        ));
        let explain = explain.bind("acme").bind(all_shards()).bind(TODAY_MAX);
        let lines: Vec<(String,)> = tx.all(explain).await.unwrap();
        let by_age = |line: &str| line.contains("Index Cond") && line.contains("created_at >=");
        assert!(lines.iter().any(|(line,)| by_age(line)), "{lines:#?}");
    }
}
