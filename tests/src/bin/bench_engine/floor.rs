//! The rate that the hardware allows: the same Postgres with only the row writes of tasks, in
//! batches of 1,000 by hand-written SQL, without planning, signing, sending or deciding.
//!
//! Two connections, one per core, each statement with its own durable commit: create tasks; claim
//! (an event, the task); finish (an event, the task, its partition, its version). Seven rows per
//! task.

use std::time::Instant;

use anyhow::Result;
use futures::future::try_join_all;
use servo_store::sqlx::{self, Connection, Executor, PgConnection};

const TASKS_PER_BATCH: i64 = 1_000;
const CONNECTIONS: i64 = 2;

const TABLES: &str = "
    DROP SCHEMA IF EXISTS floor CASCADE;
    CREATE SCHEMA floor;
    CREATE TABLE floor.events (
        shard smallint NOT NULL, position bigint NOT NULL, event_id uuid NOT NULL, type smallint NOT NULL,
        tenant text NOT NULL, recorded_at timestamptz NOT NULL, key text NOT NULL, run uuid NOT NULL,
        payload bytea NOT NULL, PRIMARY KEY (shard, position));
    CREATE TABLE floor.tasks (
        run bigint NOT NULL, ordinal integer NOT NULL, attempt integer NOT NULL, state smallint NOT NULL,
        reason smallint NOT NULL, changed_at timestamptz NOT NULL, claimed_at timestamptz, ended_at timestamptz,
        attempt_id uuid, worker_id uuid, tenant text NOT NULL, PRIMARY KEY (run, ordinal)) WITH (fillfactor = 50);
    CREATE TABLE floor.partitions (
        tenant text NOT NULL, asset text NOT NULL, partition text NOT NULL, attempt_id uuid NOT NULL,
        state smallint NOT NULL, changed_at timestamptz NOT NULL, PRIMARY KEY (tenant, asset, partition));
    CREATE TABLE floor.versions (
        attempt_id uuid PRIMARY KEY, asset text NOT NULL, run bigint NOT NULL, state smallint NOT NULL,
        output bytea NOT NULL);";

const CREATE: &str = "
    INSERT INTO floor.tasks (run, ordinal, attempt, state, reason, changed_at, tenant)
    SELECT $1, n, 0, 3, 1, now(), 'demo' FROM generate_series(1, $2) AS n";

const CLAIM: &str = "
    WITH event AS (
        INSERT INTO floor.events
        SELECT $3, $1 * 2 * $2 + n, gen_random_uuid(), 1, 'demo', now(), 'dispatch:' || n, gen_random_uuid(),
            decode(repeat('ab', 128), 'hex')
        FROM generate_series(1, $2) AS n)
    UPDATE floor.tasks SET attempt = 1, state = 4, reason = 2, changed_at = now(), claimed_at = now(),
        attempt_id = gen_random_uuid(), worker_id = gen_random_uuid() WHERE run = $1";

const FINISH: &str = "
    WITH event AS (
        INSERT INTO floor.events
        SELECT $3, $1 * 2 * $2 + $2 + n, gen_random_uuid(), 2, 'demo', now(), 'finished:' || n, gen_random_uuid(),
            decode(repeat('ab', 128), 'hex')
        FROM generate_series(1, $2) AS n),
    version AS (
        INSERT INTO floor.versions
        SELECT gen_random_uuid(), 'bench/asset', $1, 3, decode(repeat('ab', 64), 'hex')
        FROM generate_series(1, $2)),
    partition AS (
        INSERT INTO floor.partitions
        SELECT 'demo', 'bench/asset', $3 || ':' || n, gen_random_uuid(), 7, now() FROM generate_series(1, $2) AS n
        ON CONFLICT (tenant, asset, partition) DO UPDATE
        SET attempt_id = excluded.attempt_id, changed_at = excluded.changed_at)
    UPDATE floor.tasks SET state = 7, reason = 3, changed_at = now(), ended_at = now() WHERE run = $1";

/// The number of tasks in `batches` per connection.
pub(crate) fn tasks(batches: i64) -> i64 {
    CONNECTIONS * batches * TASKS_PER_BATCH
}

/// Returns tasks per second.
pub(crate) async fn measure(admin_url: &str, batches: i64) -> Result<f64> {
    PgConnection::connect(admin_url)
        .await?
        .execute(TABLES)
        .await?;
    let begun = Instant::now();
    try_join_all((0..CONNECTIONS).map(|number| write(admin_url, number, batches))).await?;
    let tasks_per_s = tasks(batches) as f64 / begun.elapsed().as_secs_f64();
    PgConnection::connect(admin_url)
        .await?
        .execute("DROP SCHEMA floor CASCADE")
        .await?;
    Ok(tasks_per_s)
}

async fn write(admin_url: &str, number: i64, batches: i64) -> Result<()> {
    let mut connection = PgConnection::connect(admin_url).await?;
    for batch in 0..batches {
        let run = number * batches + batch;
        sqlx::query(CREATE)
            .bind(run)
            .bind(TASKS_PER_BATCH)
            .execute(&mut connection)
            .await?;
        for statement in [CLAIM, FINISH] {
            let statement = sqlx::query(statement).bind(run).bind(TASKS_PER_BATCH);
            statement
                .bind(i16::try_from(number)?)
                .execute(&mut connection)
                .await?;
        }
    }
    Ok(())
}
