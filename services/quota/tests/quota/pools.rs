use servo_mesh::Reason;
use servo_proto::v1::{
    AssetDefinition, CreatePoolRequest, DeletePoolRequest, GetPoolRequest, ListPoolsRequest,
    Manifest, Pool, UpdatePoolRequest,
};

use crate::support::{TENANT, World, by, by_user, new_request_id, refused};

pub(crate) fn create(pool: &str, slots: u32) -> CreatePoolRequest {
    CreatePoolRequest {
        tenant: TENANT.into(),
        request_id: new_request_id(),
        pool: Some(Pool {
            pool: pool.into(),
            slots,
            ..Default::default()
        }),
        comment: String::new(),
    }
}

fn update(pool: &str, slots: u32, expected_version: u64) -> UpdatePoolRequest {
    UpdatePoolRequest {
        tenant: TENANT.into(),
        request_id: new_request_id(),
        pool: pool.into(),
        slots,
        expected_version,
        ..Default::default()
    }
}

pub(crate) fn delete(pool: &str, expected_version: u64) -> DeletePoolRequest {
    DeletePoolRequest {
        tenant: TENANT.into(),
        request_id: new_request_id(),
        pool: pool.into(),
        expected_version,
        comment: String::new(),
    }
}

fn get(pool: &str) -> GetPoolRequest {
    GetPoolRequest {
        tenant: TENANT.into(),
        pool: pool.into(),
    }
}

#[tokio::test]
async fn a_pool_is_created_updated_and_deleted_and_its_versions_continue() {
    let world = World::start().await;
    let mut client = world.client();
    let request = create("db", 3);
    let created = client
        .create_pool(by_user(request.clone()))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        created.pool.as_ref().map(|pool| (pool.slots, pool.version)),
        Some((3, 1))
    );
    assert_eq!(
        client
            .create_pool(by_user(request))
            .await
            .unwrap()
            .into_inner(),
        created
    );
    refused(
        client.create_pool(by_user(create("db", 4))).await,
        Reason::AlreadyExists,
        "`db`",
    );

    refused(
        client.update_pool(by_user(update("db", 5, 2))).await,
        Reason::VersionConflict,
        "version is 1",
    );
    client
        .update_pool(by_user(update("db", 0, 1)))
        .await
        .unwrap();
    let read = client
        .get_pool(by_user(get("db")))
        .await
        .unwrap()
        .into_inner()
        .pool
        .unwrap();
    assert_eq!((read.slots, read.version), (0, 2));

    refused(
        client.delete_pool(by_user(delete("db", 1))).await,
        Reason::VersionConflict,
        "version is 2",
    );
    let request = delete("db", 2);
    let deleted = client
        .delete_pool(by_user(request.clone()))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        client
            .delete_pool(by_user(request))
            .await
            .unwrap()
            .into_inner(),
        deleted
    );
    refused(
        client.get_pool(by_user(get("db"))).await,
        Reason::PoolNotFound,
        "`db`",
    );
    refused(
        client.update_pool(by_user(update("db", 1, 0))).await,
        Reason::PoolNotFound,
        "`db`",
    );
    refused(
        client.delete_pool(by_user(delete("db", 0))).await,
        Reason::PoolNotFound,
        "`db`",
    );

    let recreated = client
        .create_pool(by_user(create("db", 9)))
        .await
        .unwrap()
        .into_inner()
        .pool
        .unwrap();
    assert_eq!((recreated.slots, recreated.version), (9, 4));
    assert_eq!(world.events().await, 4);
}

#[tokio::test]
async fn pools_are_listed_by_name_in_pages_and_only_to_their_tenant() {
    let world = World::start().await;
    let mut client = world.client();
    for name in ["c", "a", "e", "b", "d"] {
        client.create_pool(by_user(create(name, 1))).await.unwrap();
    }
    client.delete_pool(by_user(delete("b", 0))).await.unwrap();
    let list = |page_token: String| ListPoolsRequest {
        tenant: TENANT.into(),
        page_size: 3,
        page_token,
    };
    let first = client
        .list_pools(by_user(list(String::new())))
        .await
        .unwrap()
        .into_inner();
    let second = client
        .list_pools(by_user(list(first.next_page_token.clone())))
        .await
        .unwrap()
        .into_inner();
    let names: Vec<&str> = first
        .pools
        .iter()
        .chain(&second.pools)
        .map(|pool| pool.pool.as_str())
        .collect();
    assert_eq!(
        (names, second.next_page_token.as_str()),
        (vec!["a", "c", "d", "e"], "")
    );
    let foreign = ListPoolsRequest {
        tenant: "other".into(),
        page_size: 3,
        page_token: first.next_page_token,
    };
    refused(
        client.list_pools(by("other", foreign)).await,
        Reason::InvalidPageToken,
        "page_token",
    );
    let of_other_tenant = ListPoolsRequest {
        tenant: "other".into(),
        ..Default::default()
    };
    assert!(
        client
            .list_pools(by("other", of_other_tenant))
            .await
            .unwrap()
            .into_inner()
            .pools
            .is_empty()
    );
    let hidden = GetPoolRequest {
        tenant: "other".into(),
        pool: "a".into(),
    };
    refused(
        client.get_pool(by("other", hidden)).await,
        Reason::PoolNotFound,
        "`a`",
    );
}

#[tokio::test]
async fn a_pool_that_a_deployment_uses_cannot_be_deleted() {
    use prost::Message;
    let world = World::start().await;
    let mut client = world.client();
    client.create_pool(by_user(create("db", 3))).await.unwrap();
    let asset = AssetDefinition {
        key: "n/a".into(),
        pool: "db".into(),
        ..Default::default()
    };
    let manifest = Manifest {
        format: 1,
        assets: vec![asset],
        ..Default::default()
    };
    let mut admin = world.admin().await;
    let sql = "WITH m AS (INSERT INTO planner.manifests (tenant, workspace, digest, manifest)
            VALUES ('acme', 'prod', sha256(''), $1) RETURNING tenant, workspace, digest)
        INSERT INTO planner.current (tenant, workspace, version, deployment_id, digest)
        SELECT tenant, workspace, 1, gen_random_uuid(), digest FROM m";
    sqlx::query(sql)
        .bind(manifest.encode_to_vec())
        .execute(&mut admin)
        .await
        .unwrap();
    refused(
        client.delete_pool(by_user(delete("db", 0))).await,
        Reason::InUse,
        "`n/a` of workspace `prod`",
    );
    sqlx::query("DELETE FROM planner.current")
        .execute(&mut admin)
        .await
        .unwrap();
    client.delete_pool(by_user(delete("db", 0))).await.unwrap();
}

#[tokio::test]
async fn an_invalid_pool_is_refused_and_changes_nothing() {
    let world = World::start().await;
    let mut client = world.client();
    refused(
        client.create_pool(by_user(create("", 1))).await,
        Reason::InvalidField,
        "pool.pool",
    );
    let long = create(&"x".repeat(1 << 20), 1);
    refused(
        client.create_pool(by_user(long)).await,
        Reason::InvalidField,
        "1048576 bytes",
    );
    let absent = CreatePoolRequest {
        pool: None,
        ..create("db", 1)
    };
    refused(
        client.create_pool(by_user(absent)).await,
        Reason::InvalidField,
        "pool: is missing",
    );
    let platform = CreatePoolRequest {
        tenant: "-".into(),
        ..create("db", 1)
    };
    refused(
        client.create_pool(by("-", platform)).await,
        Reason::InvalidField,
        "tenant",
    );
    refused(
        client.get_pool(by_user(get("a\0b"))).await,
        Reason::PoolNotFound,
        "no pool",
    );
    assert_eq!(world.events().await, 0);
}
