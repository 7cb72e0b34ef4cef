//! Tests the state of many partitions, computed from the scheduler's rows.

use servo_mesh::Reason;
use servo_proto::mesh::v1::{
    FindStalePartitionsRequest, FindStalePartitionsResponse, SummarizePartitionsRequest,
};
use servo_proto::v1::partition_dimension::Values;
use servo_proto::v1::{
    AssetDefinition, PartitionDimension, PartitionState, PartitionStretch, PartitionsDefinition,
    StaleReason, StaticValues,
};
use sqlx::{Connection, PgConnection};

use crate::support::{TENANT, WORKSPACE, World, asset, manifest, refused};

/// The side length of the grid; its square exceeds the partitions that one statement reads.
const SIDE: usize = 150;

fn grid(key: &str, upstream: &[&str]) -> AssetDefinition {
    let values = StaticValues {
        values: (0..SIDE).map(|n| format!("v{n:04}")).collect(),
        ..Default::default()
    };
    let dimension = |name: &str| PartitionDimension {
        name: name.to_owned(),
        values: Some(Values::Fixed(values.clone())),
    };
    let partitions = PartitionsDefinition {
        dimensions: vec![dimension("x"), dimension("y")],
    };
    AssetDefinition {
        partitions: Some(partitions),
        ..asset(key, upstream)
    }
}

/// Writes versions of the partitions whose x is in the range, made at an hour of the same day.
async fn write_versions(world: &World, asset: &str, from: usize, until: usize, hour: i32) {
    let mut connection = PgConnection::connect(&world.database.admin_url())
        .await
        .unwrap();
    let sql = "INSERT INTO scheduler.partitions (tenant, workspace, asset_key, partition_key, attempt_id, attempted_at,
            attempt_run, attempt_state, materialization_id, materialized_at, materialized_run, code_version)
        SELECT $1, $2, $3, format('x=s:v%s,y=s:v%s', lpad(x::text, 4, '0'), lpad(y::text, 4, '0')), id,
            at, 1, 8, id, at, 1, ''
        FROM generate_series($4, $5 - 1) AS x, generate_series(0, $6 - 1) AS y,
            (SELECT gen_random_uuid() AS id, timestamptz '2026-01-01 00:00Z' + make_interval(hours => $7) AS at) AS v
        ON CONFLICT (tenant, workspace, asset_key, partition_key)
            DO UPDATE SET materialized_at = excluded.materialized_at";
    let number = |n: usize| i32::try_from(n).unwrap();
    let insert = sqlx::query(sql)
        .bind(TENANT)
        .bind(WORKSPACE)
        .bind(asset)
        .bind(number(from))
        .bind(number(until))
        .bind(number(SIDE))
        .bind(hour);
    insert.execute(&mut connection).await.unwrap();
}

/// `n/grid` reads `n/base`: its first third was made after `n/base`, its second third before, and
/// its last third never.
async fn two_thirds_made() -> World {
    let world = World::start().await;
    world
        .deploy(manifest(vec![
            grid("n/base", &[]),
            grid("n/grid", &["n/base"]),
        ]))
        .await;
    write_versions(&world, "n/base", 0, SIDE, 10).await;
    write_versions(&world, "n/grid", 0, 2 * SIDE / 3, 11).await;
    write_versions(&world, "n/base", SIDE / 3, 2 * SIDE / 3, 12).await;
    world
}

fn summarize(asset_key: &str, in_progress: &[&str]) -> SummarizePartitionsRequest {
    SummarizePartitionsRequest {
        tenant: TENANT.into(),
        workspace: WORKSPACE.into(),
        asset_key: asset_key.into(),
        max_stretches: 200,
        in_progress: in_progress.iter().map(ToString::to_string).collect(),
    }
}

fn stretch(stretch: &PartitionStretch) -> (&str, &str, PartitionState, u64) {
    assert_eq!(stretch.counts.len(), 1, "nothing was merged");
    (
        &stretch.first_key,
        &stretch.last_key,
        stretch.counts[0].state(),
        stretch.counts[0].count,
    )
}

#[tokio::test]
async fn all_partitions_of_an_asset_are_summarized() {
    use PartitionState::{InProgress, Missing, Stale, UpToDate};
    let world = two_thirds_made().await;
    let request = summarize("n/grid", &["x=s:v0000,y=s:v0000", "x=s:gone,y=s:v0000"]);
    let found = world
        .scheduler()
        .summarize_partitions(request)
        .await
        .unwrap()
        .into_inner();
    let third = (SIDE * SIDE / 3) as u64;
    assert_eq!(found.total, 3 * third);
    let counts: Vec<(PartitionState, u64)> = found
        .counts
        .iter()
        .map(|count| (count.state(), count.count))
        .collect();
    assert_eq!(
        counts,
        [
            (Missing, third),
            (InProgress, 1),
            (UpToDate, third - 1),
            (Stale, third)
        ]
    );
    let stretches: Vec<_> = found.stretches.iter().map(stretch).collect();
    assert_eq!(
        stretches,
        [
            ("x=s:v0000,y=s:v0000", "x=s:v0000,y=s:v0000", InProgress, 1),
            (
                "x=s:v0000,y=s:v0001",
                "x=s:v0049,y=s:v0149",
                UpToDate,
                third - 1
            ),
            ("x=s:v0050,y=s:v0000", "x=s:v0099,y=s:v0149", Stale, third),
            ("x=s:v0100,y=s:v0000", "x=s:v0149,y=s:v0149", Missing, third),
        ]
    );
    let merged = SummarizePartitionsRequest {
        max_stretches: 2,
        ..summarize("n/grid", &[])
    };
    let merged = world
        .scheduler()
        .summarize_partitions(merged)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(merged.stretches.len(), 2);
    let none = world
        .scheduler()
        .summarize_partitions(summarize("n/gird", &[]))
        .await;
    refused(none, Reason::AssetNotFound, "n/grid");
}

fn find(selection: &[&str], page_token: &str, reason: StaleReason) -> FindStalePartitionsRequest {
    FindStalePartitionsRequest {
        tenant: TENANT.into(),
        workspace: WORKSPACE.into(),
        selection: selection.iter().map(ToString::to_string).collect(),
        page_size: 100,
        page_token: page_token.into(),
        reason: reason.into(),
    }
}

fn keys(found: &FindStalePartitionsResponse) -> (&str, &str) {
    let key = |at: usize| found.partitions[at].partition_key.as_str();
    (key(0), key(found.partitions.len() - 1))
}

#[tokio::test]
async fn stale_partitions_are_listed_page_by_page() {
    let world = two_thirds_made().await;
    let mut scheduler = world.scheduler();
    let any = StaleReason::Unspecified;
    let first = scheduler
        .find_stale_partitions(find(&[], "", any))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(first.total, (SIDE * SIDE / 3) as u64);
    assert_eq!(keys(&first), ("x=s:v0050,y=s:v0000", "x=s:v0050,y=s:v0099"));
    let staleness = first.partitions[0].staleness.as_ref().unwrap();
    let cause = &staleness.causes[0];
    assert_eq!(
        (cause.reason(), cause.asset_key.as_str()),
        (StaleReason::UpstreamChanged, "n/base")
    );
    assert_eq!(cause.partition_key, "x=s:v0050,y=s:v0000");
    // 2026-01-01T12:00:00Z, when its input was made.
    assert_eq!(staleness.stale_since.unwrap().seconds, 1_767_268_800);
    let next = find(&[], &first.next_page_token, any);
    let second = scheduler
        .find_stale_partitions(next)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        keys(&second),
        ("x=s:v0050,y=s:v0100", "x=s:v0051,y=s:v0049")
    );

    let base = scheduler
        .find_stale_partitions(find(&["n/base"], "", any))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((base.total, base.partitions.len()), (0, 0));
    let by_code = find(&[], "", StaleReason::CodeChanged);
    assert_eq!(
        scheduler
            .find_stale_partitions(by_code)
            .await
            .unwrap()
            .into_inner()
            .total,
        0
    );
    let unknown = scheduler
        .find_stale_partitions(find(&["n/x"], "", any))
        .await;
    refused(unknown, Reason::AssetNotFound, "n/x");
    refused(
        scheduler.find_stale_partitions(find(&[], "x", any)).await,
        Reason::InvalidPageToken,
        "",
    );
}

#[tokio::test]
async fn reasons_that_are_not_computed_are_refused() {
    let world = two_thirds_made().await;
    for reason in [StaleReason::UpstreamStale, StaleReason::TooOld] {
        let found = world
            .scheduler()
            .find_stale_partitions(find(&[], "", reason))
            .await;
        refused(found, Reason::NotImplemented, reason.as_str_name());
    }
}
