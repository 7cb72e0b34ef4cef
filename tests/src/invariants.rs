//! Invariants of the store that hold once every run in it has ended.
//!
//! Each invariant is a query that finds its violations; its number is that of `docs/failures.md`.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use prost::Message;
use servo_client::api;
use servo_local::LocalMesh;
use servo_model::Service;
use servo_store::sqlx::{self, Connection, PgConnection};

/// How many of the newest runs are compared with their plans.
const RUNS_COMPARED: i64 = 200;
const SUCCEEDED: i16 = 8;

const INVARIANTS: [(&str, &str); 17] = [
    (
        "I1, I14: a key is appended once",
        "SELECT tenant || '/' || workspace || ': ' || idempotency_key FROM ledger.events
         GROUP BY tenant, workspace, idempotency_key HAVING count(*) > 1",
    ),
    (
        "I3: every run has ended",
        "SELECT 'run ' || run_id || ' is in state ' || state FROM scheduler.runs WHERE state < 5 OR ended_at IS NULL",
    ),
    (
        "I4: one version per asset, partition and run, written by the attempt that counts",
        "SELECT 'run ' || m.run_number || ', ' || m.asset_key || '[' || m.partition_key || ']'
         FROM scheduler.materializations m
         LEFT JOIN scheduler.tasks t ON (t.run_number, t.ordinal, t.item) = (m.run_number, m.ordinal, m.item)
             AND t.attempt_id = m.attempt_id AND t.state = 8
         WHERE m.state IN (3, 4)
         GROUP BY m.run_number, m.asset_key, m.partition_key HAVING count(*) > 1 OR count(t.run_number) = 0",
    ),
    (
        "I6: a published message was folded and belongs to an existing run",
        "SELECT 'shard ' || m.shard || ', position ' || m.position FROM bus.messages m
         LEFT JOIN ledger.shards s ON s.stream = 1 AND s.shard = m.shard
         LEFT JOIN scheduler.runs r ON r.run_id = m.key AND r.tenant = m.tenant
         WHERE m.topic = 1 AND (m.position > coalesce(s.watermark, 0) OR r.run_id IS NULL)",
    ),
    (
        "I13: nothing is claimed or becomes ready after an accepted cancel",
        "SELECT 'run ' || t.run_number || ', task ' || t.ordinal FROM scheduler.tasks t
         JOIN scheduler.runs r ON r.run_number = t.run_number
         JOIN ledger.events e ON e.stream = 1 AND e.shard = r.shard AND e.correlation_id = r.run_id AND e.type = 28
         WHERE t.claimed_at > e.recorded_at OR t.ready_at > e.recorded_at",
    ),
    (
        "I13: a cancelled run ends",
        "SELECT 'run ' || r.run_id || ' is in state ' || r.state FROM scheduler.runs r
         JOIN ledger.events e ON e.stream = 1 AND e.shard = r.shard AND e.correlation_id = r.run_id AND e.type = 28
         WHERE r.ended_at IS NULL OR r.ended_at < e.recorded_at",
    ),
    (
        "I7: positions have no gaps and no duplicates, and all of them are folded",
        "SELECT 'stream ' || s.stream || ', shard ' || s.shard || ': head ' || s.head || ', watermark ' || s.watermark
             || ', ' || count(e.position) || ' events'
         FROM ledger.shards s LEFT JOIN ledger.events e ON e.stream = s.stream AND e.shard = s.shard
         GROUP BY s.stream, s.shard
         HAVING count(e.position) <> s.head OR count(DISTINCT e.position) <> s.head
             OR coalesce(max(e.position), 0) <> s.head OR (s.stream = 1 AND s.watermark <> s.head)",
    ),
    (
        "I11: the plan of every run is stored",
        "SELECT 'run ' || r.run_id FROM scheduler.runs r
         LEFT JOIN planner.plans p ON (p.tenant, p.workspace, p.plan_id) = (r.tenant, r.workspace, r.plan_id)
         WHERE r.started_at IS NOT NULL AND p.plan_id IS NULL",
    ),
    (
        "I12: a task has the tenant of its run",
        "SELECT 'run ' || t.run_number || ', task ' || t.ordinal FROM scheduler.tasks t
         LEFT JOIN scheduler.runs r ON r.run_number = t.run_number WHERE r.tenant IS DISTINCT FROM t.tenant",
    ),
    (
        "I12: a version has the tenant of its run",
        "SELECT 'attempt ' || m.attempt_id FROM scheduler.materializations m
         LEFT JOIN scheduler.runs r ON r.run_number = m.run_number
         WHERE (r.tenant, r.workspace) IS DISTINCT FROM (m.tenant, m.workspace)",
    ),
    (
        "I12: a check result has the tenant of its run",
        "SELECT 'attempt ' || k.attempt_id FROM scheduler.check_results k
         LEFT JOIN scheduler.runs r ON r.run_number = k.run_number
         WHERE (r.tenant, r.workspace) IS DISTINCT FROM (k.tenant, k.workspace)",
    ),
    (
        "decisions: every decision about a version is in the ledger, and only quarantined versions have one",
        "SELECT 'attempt ' || m.attempt_id FROM scheduler.materializations m
         LEFT JOIN ledger.events e ON e.event_id = m.resolved_event AND e.type = 32
         WHERE (m.resolved_event IS NULL) IS DISTINCT FROM (m.version = 0)
             OR (m.resolved_event IS NOT NULL AND (e.event_id IS NULL OR m.state NOT IN (3, 5)))
             OR (m.resolved_event IS NULL AND m.state = 5)",
    ),
    (
        "I12: the version that a partition shows was written by its own tenant",
        "SELECT p.asset_key || '[' || p.partition_key || ']' FROM scheduler.partitions p
         LEFT JOIN scheduler.materializations m
             ON m.attempt_id = p.materialization_id AND m.asset_key = p.asset_key
         WHERE p.materialization_id IS NOT NULL AND m.state IS NOT NULL
             AND (m.state <> 3 OR (m.tenant, m.workspace, m.partition_key)
                 IS DISTINCT FROM (p.tenant, p.workspace, p.partition_key))",
    ),
    (
        "I16: an ended run has no open task",
        "SELECT 'run ' || t.run_number || ', task ' || t.ordinal || ' is in state ' || t.state
         FROM scheduler.tasks t JOIN scheduler.runs r ON r.run_number = t.run_number
         WHERE r.ended_at IS NOT NULL AND t.state < 8",
    ),
    (
        "rows are sane: values that no constraint checks on the hot path",
        "SELECT 'run ' || run_number || ', task ' || ordinal FROM scheduler.tasks
         WHERE state NOT BETWEEN 1 AND 11 OR attempt < 0 OR failures < 0 OR ordinal < 0 OR item < -1 OR tenant = ''
             OR failures > attempt",
    ),
    (
        "rows are sane: partitions and shards",
        "SELECT asset_key || '[' || partition_key || ']' FROM scheduler.partitions WHERE tenant = '' OR workspace = ''
         UNION ALL SELECT 'shard ' || shard FROM ledger.shards WHERE shard < 0 OR epoch < 0",
    ),
    (
        "the times of a task are in order",
        "SELECT 'run ' || run_number || ', task ' || ordinal FROM scheduler.tasks
         WHERE ended_at < ready_at OR ended_at < claimed_at OR (state >= 8) <> (ended_at IS NOT NULL)",
    ),
];

/// Describes the violations, at most three of each invariant.
pub async fn violations(admin_url: &str) -> Result<Vec<String>> {
    let mut connection = PgConnection::connect(admin_url).await?;
    let mut found = Vec::new();
    for (name, query) in INVARIANTS {
        let limited = format!("SELECT * FROM ({query}) q LIMIT 3");
        let rows: Vec<(String,)> = sqlx::query_as(sqlx::AssertSqlSafe(limited))
            .fetch_all(&mut connection)
            .await
            .with_context(|| format!("check `{name}`"))?;
        found.extend(rows.into_iter().map(|(row,)| format!("{name}: {row}")));
    }
    found.extend(claimed_too_early(&mut connection).await?);
    found.extend(deadlocks(&mut connection).await?);
    Ok(found)
}

/// I8: tasks that were claimed before all their upstream tasks had succeeded. Dependencies are not
/// rows, so they are read from the plans.
async fn claimed_too_early(connection: &mut PgConnection) -> Result<Vec<String>> {
    let runs: Vec<(i64, Vec<u8>)> = sqlx::query_as(
        "SELECT r.run_number, p.plan FROM scheduler.runs r
         JOIN planner.plans p ON (p.tenant, p.workspace, p.plan_id) = (r.tenant, r.workspace, r.plan_id)
         ORDER BY r.run_number DESC LIMIT $1",
    )
    .bind(RUNS_COMPARED)
    .fetch_all(&mut *connection)
    .await?;
    let mut found = Vec::new();
    for (number, plan) in runs {
        let plan = api::Plan::decode(&*plan).context("read a plan")?;
        let tasks: Vec<(i32, i16, Option<i64>, Option<i64>)> = sqlx::query_as(
            "SELECT ordinal, state, (extract(epoch FROM claimed_at) * 1000000)::bigint,
                 (extract(epoch FROM ended_at) * 1000000)::bigint
             FROM scheduler.tasks WHERE run_number = $1 AND item = -1",
        )
        .bind(number)
        .fetch_all(&mut *connection)
        .await?;
        let by_ordinal: HashMap<i32, _> = tasks
            .iter()
            .map(|task| (task.0, (task.1, task.3)))
            .collect();
        for (ordinal, _, claimed_at, _) in tasks.iter().filter(|task| task.2.is_some()) {
            let Some(task) = plan.tasks.get(usize::try_from(*ordinal)?) else {
                continue;
            };
            let is_open = |up: &&u32| match by_ordinal.get(&up.cast_signed()) {
                Some((SUCCEEDED, ended_at)) => ended_at > claimed_at,
                _ => true,
            };
            let early = task.upstream.iter().find(is_open);
            found.extend(
                early.map(|up| format!("I8: run {number}, task {ordinal} did not wait for {up}")),
            );
        }
    }
    found.truncate(3);
    Ok(found)
}

/// F18. Idle backends report deadlocks, so the most recent ones may be missing.
async fn deadlocks(connection: &mut PgConnection) -> Result<Option<String>> {
    let count: i64 = sqlx::query_scalar(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
    )
    .fetch_one(connection)
    .await?;
    Ok((count > 0).then(|| format!("F18: {count} deadlocks")))
}

/// Checks all invariants; then stops the schedulers and checks that a rebuild of every table
/// changes nothing.
pub async fn check(mesh: &mut LocalMesh, binaries: &Path) -> Result<()> {
    let violations = violations(mesh.admin_url()).await?;
    ensure!(violations.is_empty(), "{}", violations.join("\n"));
    mesh.stop_service(Service::Scheduler).await?;
    check_rebuild(mesh, binaries)
}

fn check_rebuild(mesh: &LocalMesh, binaries: &Path) -> Result<()> {
    let (url, password) = mesh.role_access();
    let rebuild = Command::new(binaries.join("servo-standalone"))
        .args(["rebuild", "--json"])
        .env("SERVO_DATABASE__URL", url)
        .env("SERVO_ROLE_PASSWORD", password)
        .output()
        .context("run `servo-standalone rebuild`")?;
    let stderr = String::from_utf8_lossy(&rebuild.stderr);
    ensure!(rebuild.status.success(), "the rebuild failed: {stderr}");
    let tables: Vec<serde_json::Value> =
        serde_json::from_slice(&rebuild.stdout).context("parse the output of the rebuild")?;
    ensure!(!tables.is_empty(), "the rebuild names no table");
    let different: Vec<_> = tables
        .iter()
        .filter(|table| table["equal"] != true)
        .collect();
    ensure!(
        different.is_empty(),
        "these tables differ from the ledger: {different:?}"
    );
    Ok(())
}
