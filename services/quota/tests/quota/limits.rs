use prost::Message;
use servo_mesh::Reason;
use servo_proto::v1::{
    Event, GetQuotaRequest, QuotaLimits, UpdateQuotaRequest, event, quota_changed,
};

use crate::support::{PLATFORM, TENANT, World, by_user, refused, tasks, update};

#[tokio::test]
async fn a_tenant_without_settings_has_no_caps_on_what_runs() {
    let world = World::start().await;
    let quota = world.quota_of(TENANT).await;
    assert_eq!(
        (quota.version, quota.limits),
        (0, Some(QuotaLimits::default()))
    );
    let effective = quota.effective.unwrap();
    assert_eq!(
        (
            effective.max_concurrent_tasks,
            effective.max_concurrent_runs
        ),
        (None, None)
    );
    assert_eq!(
        (effective.weight_millis, effective.backfill_cap_ppm),
        (Some(1_000), Some(500_000))
    );
    assert_eq!(effective.max_run_duration.unwrap().seconds, 24 * 3600);
}

#[tokio::test]
async fn tenant_settings_override_platform_settings_which_override_the_configuration() {
    let world = World::start_with(1, &[("quota.defaults.max_concurrent_tasks", "100")]).await;
    let effective_cap = async || {
        world
            .quota_of(TENANT)
            .await
            .effective
            .unwrap()
            .max_concurrent_tasks
    };
    assert_eq!(effective_cap().await, Some(100));
    world.set_limits(PLATFORM, tasks(50)).await;
    assert_eq!(effective_cap().await, Some(50));
    world.set_limits(TENANT, tasks(0)).await;
    assert_eq!(effective_cap().await, Some(0));
    world.set_limits(TENANT, tasks(u32::MAX)).await;
    assert_eq!(effective_cap().await, None);
    world.set_limits(TENANT, QuotaLimits::default()).await;
    assert_eq!(effective_cap().await, Some(50));
    assert_eq!(
        world
            .quota_of("other")
            .await
            .effective
            .unwrap()
            .max_concurrent_tasks,
        Some(50)
    );
}

#[tokio::test]
async fn a_repeated_change_is_applied_once_and_is_one_event() {
    let world = World::start().await;
    let mut client = world.client();
    let request = UpdateQuotaRequest {
        comment: "night shift".into(),
        ..update(TENANT, tasks(7))
    };
    let first = client
        .update_quota(by_user(request.clone()))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (first.version, first.effective.unwrap().max_concurrent_tasks),
        (1, Some(7))
    );
    let repeated = client
        .update_quota(by_user(request.clone()))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(repeated, first);
    assert_eq!(world.events().await, 1);
    let other = UpdateQuotaRequest {
        limits: Some(tasks(8)),
        ..request
    };
    refused(
        client.update_quota(by_user(other)).await,
        Reason::RequestIdReused,
        "another body",
    );

    let sql = "SELECT tenant, payload FROM ledger.events WHERE stream = 5 /* quota */";
    let (tenant, payload): (String, Vec<u8>) = sqlx::query_as(sql)
        .fetch_one(&mut world.admin().await)
        .await
        .unwrap();
    let Some(event::Body::QuotaChanged(change)) = Event::decode(&*payload).unwrap().body else {
        panic!()
    };
    assert_eq!(
        (tenant.as_str(), change.subject.as_str(), change.version),
        (TENANT, "quota", 1)
    );
    assert_eq!(
        change.setting,
        Some(quota_changed::Setting::Limits(tasks(7)))
    );
    let actor = change.changed_by.unwrap();
    assert_eq!(
        (actor.principal.as_str(), actor.comment.as_str()),
        ("user:ann", "night shift")
    );
}

#[tokio::test]
async fn a_stale_version_is_refused_and_changes_nothing() {
    let world = World::start().await;
    let expecting = |expected_version, max| {
        by_user(UpdateQuotaRequest {
            expected_version,
            ..update(TENANT, tasks(max))
        })
    };
    let mut client = world.client();
    refused(
        client.update_quota(expecting(1, 5)).await,
        Reason::VersionConflict,
        "current version is 0",
    );
    client.update_quota(expecting(0, 5)).await.unwrap();
    client.update_quota(expecting(1, 6)).await.unwrap();
    refused(
        client.update_quota(expecting(1, 7)).await,
        Reason::VersionConflict,
        "current version is 2",
    );
    let quota = world.quota_of(TENANT).await;
    assert_eq!((quota.version, quota.limits), (2, Some(tasks(6))));
    assert_eq!(world.events().await, 2);
}

#[tokio::test]
async fn one_of_several_concurrent_changes_with_the_same_expected_version_wins() {
    let world = World::start().await;
    world.set_limits(TENANT, tasks(1)).await;
    let change = |max: u32| {
        let mut client = world.client();
        let request = UpdateQuotaRequest {
            expected_version: 1,
            ..update(TENANT, tasks(max))
        };
        async move { client.update_quota(by_user(request)).await }
    };
    let (a, b, c) = tokio::join!(change(10), change(11), change(12));
    let won = [&a, &b, &c].iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(won, 1);
    for lost in [a, b, c].into_iter().filter(Result::is_err) {
        refused(lost, Reason::VersionConflict, "current version is 2");
    }
    assert_eq!(world.events().await, 2);
}

#[tokio::test]
async fn invalid_fields_are_named_and_change_nothing() {
    let world = World::start().await;
    let mut client = world.client();
    let nothing = QuotaLimits::default();
    let mut refuse = async |limits, part: &str| {
        let answer = client.update_quota(by_user(update(TENANT, limits))).await;
        refused(answer, Reason::InvalidField, part);
    };
    refuse(
        QuotaLimits {
            weight_millis: Some(0),
            ..nothing
        },
        "limits.weight_millis",
    )
    .await;
    refuse(
        QuotaLimits {
            backfill_cap_ppm: Some(2_000_000),
            ..nothing
        },
        "limits.backfill_cap_ppm",
    )
    .await;
    // The default floor is 100,000.
    refuse(
        QuotaLimits {
            backfill_cap_ppm: Some(99_999),
            ..nothing
        },
        "limits.backfill_floor_ppm",
    )
    .await;
    let mut client = world.client();
    let absent = UpdateQuotaRequest {
        limits: None,
        ..update(TENANT, nothing)
    };
    refused(
        client.update_quota(by_user(absent)).await,
        Reason::InvalidField,
        "limits: is missing",
    );
    let without_request_id = UpdateQuotaRequest {
        request_id: String::new(),
        ..update(TENANT, nothing)
    };
    refused(
        client.update_quota(by_user(without_request_id)).await,
        Reason::RequestIdRequired,
        "request_id",
    );
    let long = UpdateQuotaRequest {
        comment: "x".repeat(1 << 20),
        ..update(TENANT, nothing)
    };
    refused(
        client.update_quota(by_user(long)).await,
        Reason::InvalidField,
        "comment: has 1048576 bytes",
    );
    let foreign = client.update_quota(by_user(update("evil", tasks(1)))).await;
    refused(foreign, Reason::TenantMismatch, "evil");
    let uppercase = GetQuotaRequest {
        tenant: "ACME".into(),
    };
    refused(
        client.get_quota(by_user(uppercase)).await,
        Reason::InvalidField,
        "tenant: `ACME` is not a tenant name",
    );
    assert_eq!(
        (world.events().await, world.quota_of(TENANT).await.version),
        (0, 0)
    );
}
