use servo_mesh::Reason;
use servo_proto::mesh::v1::{ExpandPartitionsRequest, MakePlansRequest, PlanOrder, plan_result};
use servo_proto::v1::partition_dimension::Values;
use servo_proto::v1::partition_selection::Partitions;
use servo_proto::v1::{
    AddDynamicPartitionsRequest, DynamicValues, ListDynamicPartitionsRequest, Manifest,
    PartitionDimension, PartitionSelection, PartitionsDefinition, RemoveDynamicPartitionsRequest,
    RunSpec, TimeGrain, TimeGrid,
};

use crate::support::{TENANT, WORKSPACE, World, asset, by_user, manifest, refused};

fn dimension(name: &str, values: Values) -> PartitionDimension {
    PartitionDimension {
        name: name.into(),
        values: Some(values),
    }
}

/// One asset partitioned by the hours of 2025, and one by a dynamic set of customers.
fn hours_and_customers() -> Manifest {
    let hours = TimeGrid {
        grain: TimeGrain::Hour.into(),
        start: "2025-01-01T00:00:00Z".into(),
        end: "2026-01-01T00:00:00Z".into(),
        ..Default::default()
    };
    let mut hourly = asset("n/hourly", &[]);
    hourly.partitions = Some(PartitionsDefinition {
        dimensions: vec![dimension("hour", Values::Time(hours))],
    });
    let mut customers = asset("n/customers", &[]);
    let set = Values::Dynamic(DynamicValues {
        set: "customers".into(),
    });
    customers.partitions = Some(PartitionsDefinition {
        dimensions: vec![dimension("customer", set)],
    });
    manifest(vec![hourly, customers])
}

fn add(request_id: &str, values: &[String]) -> AddDynamicPartitionsRequest {
    AddDynamicPartitionsRequest {
        tenant: TENANT.into(),
        workspace: WORKSPACE.into(),
        request_id: request_id.into(),
        set: "customers".into(),
        values: values.to_vec(),
    }
}

fn remove(request_id: &str, values: &[&str]) -> RemoveDynamicPartitionsRequest {
    RemoveDynamicPartitionsRequest {
        tenant: TENANT.into(),
        workspace: WORKSPACE.into(),
        request_id: request_id.into(),
        set: "customers".into(),
        values: values.iter().map(ToString::to_string).collect(),
    }
}

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

async fn listed(world: &World) -> Vec<String> {
    let request = ListDynamicPartitionsRequest {
        tenant: TENANT.into(),
        workspace: WORKSPACE.into(),
        set: "customers".into(),
        ..Default::default()
    };
    let page = world
        .client()
        .list_dynamic_partitions(by_user(request))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(page.total, page.partitions.len() as u64);
    page.partitions
        .into_iter()
        .map(|partition| partition.value)
        .collect()
}

#[tokio::test]
async fn dynamic_partitions_are_added_and_removed_once_per_request() {
    let world = World::start().await;
    world.deploy(hours_and_customers()).await;
    let mut client = world.client();
    let first = client
        .add_dynamic_partitions(by_user(add("a", &texts(&["z", "b", "z"]))))
        .await
        .unwrap();
    assert_eq!(first.get_ref().added, 2);
    let repeated = client
        .add_dynamic_partitions(by_user(add("a", &texts(&["z", "b", "z"]))))
        .await
        .unwrap();
    assert_eq!(repeated.get_ref(), first.get_ref());
    let more = client
        .add_dynamic_partitions(by_user(add("b", &texts(&["b", "a"]))))
        .await
        .unwrap();
    assert_eq!(more.get_ref().added, 1);
    assert_eq!(listed(&world).await, ["z", "b", "a"]);
    let removed = client
        .remove_dynamic_partitions(by_user(remove("c", &["b", "unknown"])))
        .await
        .unwrap();
    assert_eq!(removed.get_ref().removed, 1);
    assert_eq!(listed(&world).await, ["z", "a"]);
    // One deployment, two additions, one removal.
    assert_eq!(world.count("events").await, 4);
    let reused = client
        .remove_dynamic_partitions(by_user(remove("a", &["z"])))
        .await;
    refused(reused, Reason::RequestIdReused, "another body");
    assert_eq!(world.count("events").await, 4);

    let order = PlanOrder {
        tenant: TENANT.into(),
        workspace: WORKSPACE.into(),
        spec: Some(RunSpec {
            selection: texts(&["n/customers"]),
            partitions: Some(PartitionSelection {
                partitions: Some(Partitions::All(true)),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    };
    let made = world
        .scheduler()
        .make_plans(MakePlansRequest {
            orders: vec![order],
        })
        .await
        .unwrap()
        .into_inner();
    let Some(plan_result::Result::Plan(plan)) = &made.results[0].result else {
        panic!("{made:?}")
    };
    let keys: Vec<&str> = plan
        .plan
        .as_ref()
        .unwrap()
        .tasks
        .iter()
        .map(|t| t.partition_key.as_str())
        .collect();
    assert_eq!(keys, ["customer=s:a", "customer=s:z"]);
}

#[tokio::test]
async fn a_large_change_is_split_into_several_events() {
    let world = World::start().await;
    let values: Vec<String> = (0..10_000)
        .map(|n| format!("customer-with-a-name-of-some-length-{n}"))
        .collect();
    let answer = world
        .client()
        .add_dynamic_partitions(by_user(add("big", &values)))
        .await
        .unwrap();
    assert_eq!(answer.get_ref().added, 10_000);
    assert_eq!(world.count("values").await, 10_000);
    assert!(world.count("events").await > 1);
}

#[tokio::test]
async fn invalid_values_are_refused_and_change_nothing() {
    let world = World::start().await;
    let mut client = world.client();
    let mut refuse = async |values: Vec<String>, part: &str| {
        refused(
            client
                .add_dynamic_partitions(by_user(add("r", &values)))
                .await,
            Reason::InvalidField,
            part,
        );
    };
    refuse(vec![], "has 0 entries").await;
    refuse(vec!["x".into(); 10_001], "has 10001 entries").await;
    refuse(texts(&["ok", ""]), "values[1]").await;
    refuse(vec!["x".repeat(1 << 20)], "values[0]").await;
    let unnamed = AddDynamicPartitionsRequest {
        set: String::new(),
        ..add("r", &texts(&["x"]))
    };
    refused(
        client.add_dynamic_partitions(by_user(unnamed)).await,
        Reason::InvalidField,
        "set",
    );
    let without_request_id = client
        .add_dynamic_partitions(by_user(add("", &texts(&["x"]))))
        .await;
    refused(without_request_id, Reason::RequestIdRequired, "request_id");
    assert_eq!(
        (world.count("values").await, world.count("events").await),
        (0, 0)
    );
}

#[tokio::test]
async fn partitions_are_counted_and_listed_in_pages() {
    let world = World::start().await;
    world.deploy(hours_and_customers()).await;
    let expand = |partitions: Partitions| ExpandPartitionsRequest {
        tenant: TENANT.into(),
        workspace: WORKSPACE.into(),
        selection: texts(&["n/hourly"]),
        partitions: Some(PartitionSelection {
            partitions: Some(partitions),
            ..Default::default()
        }),
        page_size: 5_000,
        ..Default::default()
    };
    let mut client = world.scheduler();
    let first = client
        .expand_partitions(expand(Partitions::All(true)))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((first.total, first.partition_keys.len()), (8_760, 5_000));
    let next = ExpandPartitionsRequest {
        page_token: first.next_page_token,
        ..expand(Partitions::All(true))
    };
    let next = client.expand_partitions(next).await.unwrap().into_inner();
    assert_eq!(
        (next.partition_keys.len(), next.next_page_token.as_str()),
        (3_760, "")
    );
    assert_eq!(
        next.partition_keys.last().unwrap(),
        "hour=t:2025-12-31T23:00:00Z"
    );
    let newest = ExpandPartitionsRequest {
        newest_first: true,
        page_size: 1,
        ..expand(Partitions::Latest(24))
    };
    let newest = client.expand_partitions(newest).await.unwrap().into_inner();
    assert_eq!(
        (newest.total, newest.partition_keys),
        (24, texts(&["hour=t:2025-12-31T23:00:00Z"]))
    );
    let counted = ExpandPartitionsRequest {
        count_only: true,
        ..expand(Partitions::All(true))
    };
    assert!(
        client
            .expand_partitions(counted)
            .await
            .unwrap()
            .into_inner()
            .partition_keys
            .is_empty()
    );
    let mixed = ExpandPartitionsRequest {
        selection: texts(&["*"]),
        ..expand(Partitions::All(true))
    };
    refused(
        client.expand_partitions(mixed).await,
        Reason::PartitionInvalid,
        "have different partitionings",
    );
}
