//! The private cluster starts, survives `kill -9`, keeps its data, and leaves no process running.

use servo_local::{Child, Postgres, PostgresOptions};
use sqlx::{Connection, PgConnection};

#[tokio::test]
async fn killed_cluster_restarts_with_its_data() {
    let dir = tempfile::tempdir().unwrap();
    let mut postgres = Postgres::start(&dir.path().join("pg")).unwrap();
    let mut first = PgConnection::connect(&postgres.admin_url()).await.unwrap();
    sqlx::query("CREATE TABLE kept AS SELECT 7 AS n")
        .execute(&mut first)
        .await
        .unwrap();
    postgres.kill_9().unwrap();
    assert!(
        sqlx::query("SELECT 1").execute(&mut first).await.is_err(),
        "the old connection is dead"
    );
    postgres.restart().unwrap();
    let mut second = PgConnection::connect(&postgres.admin_url()).await.unwrap();
    let n: i32 = sqlx::query_scalar("SELECT n FROM kept")
        .fetch_one(&mut second)
        .await
        .unwrap();
    assert_eq!(n, 7);
}

#[tokio::test]
async fn stopped_cluster_leaves_no_process() {
    let dir = tempfile::tempdir().unwrap();
    let postgres = Postgres::start_with(dir.path(), PostgresOptions::without_durability()).unwrap();
    let url = postgres.admin_url();
    drop(postgres);
    assert!(PgConnection::connect(&url).await.is_err());
}

#[test]
fn dropped_child_leaves_no_process() {
    let mut command = Child::command("sleep".as_ref());
    command.arg("600");
    let child = Child::spawn("sleep", command).unwrap();
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    drop(child);
    assert!(nix::sys::signal::kill(pid, None).is_err());
}
