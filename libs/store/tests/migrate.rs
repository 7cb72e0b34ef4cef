//! Migrations: twice, at once, by a plain administrator, and never over an edited one.

use servo_local::TestDatabase;
use servo_store::migrate::{MIGRATIONS, migrate};

#[tokio::test]
async fn a_second_run_applies_nothing() {
    let database = TestDatabase::create().await.unwrap();
    let report = migrate(&database.admin_url(), database.password()).await.unwrap();
    assert_eq!(report.applied, Vec::<&str>::new());
    assert_eq!(report.version, MIGRATIONS.len());
}
