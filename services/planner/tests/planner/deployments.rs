use servo_mesh::Reason;
use servo_model::Digest;
use servo_proto::v1::{
    ChangeKind, DeployRequest, FreshnessPolicy, GetAssetRequest, GetDeploymentRequest,
    GetLineageRequest, ListAssetsRequest, ListDeploymentsRequest,
};
use tonic_types::StatusExt;

use crate::support::{
    TENANT, WORKSPACE, World, asset, by_user, by_user_of, chain, deploy_request, manifest, refused,
};

fn get(id: &str) -> GetDeploymentRequest {
    GetDeploymentRequest {
        tenant: TENANT.into(),
        workspace: WORKSPACE.into(),
        deployment_id: id.into(),
        include_manifest: true,
    }
}

#[tokio::test]
async fn a_deployment_is_stored_once_and_read_back() {
    let world = World::start().await;
    let mut client = world.client();
    let none = client.get_deployment(by_user(get("current"))).await;
    refused(none, Reason::DeploymentNotFound, "nothing is deployed");

    let request = deploy_request("r1", chain());
    let first = client
        .deploy(by_user(request.clone()))
        .await
        .unwrap()
        .into_inner();
    let deployment = first.deployment.clone().unwrap();
    assert_eq!(
        (
            deployment.version,
            deployment.asset_count,
            deployment.current
        ),
        (1, 3, true)
    );
    assert_eq!(
        deployment.deployed_by.clone().unwrap().principal,
        "user:ann"
    );
    assert_eq!(first.diff.as_ref().unwrap().changes.len(), 3);
    assert_eq!(world.count("events").await, 1);

    // A repeated request gets the first answer and changes nothing; another body under the same id
    // is refused.
    assert_eq!(
        client.deploy(by_user(request)).await.unwrap().into_inner(),
        first
    );
    let other = deploy_request("r1", manifest(vec![asset("n/z", &[])]));
    refused(
        client.deploy(by_user(other)).await,
        Reason::RequestIdReused,
        "another body",
    );
    assert_eq!(
        (
            world.count("deployments").await,
            world.count("events").await
        ),
        (1, 1)
    );

    // Equal content in another order is the same manifest but a new version.
    let mut reordered = chain();
    reordered.assets.reverse();
    let second = world.deploy(reordered).await;
    assert_eq!(second.deployment.as_ref().unwrap().version, 2);
    assert_eq!(
        second.deployment.as_ref().unwrap().manifest_digest,
        deployment.manifest_digest
    );
    assert!(second.diff.unwrap().changes.is_empty());
    assert_eq!(
        (
            world.count("deployments").await,
            world.count("manifests").await
        ),
        (2, 1)
    );

    let current = client
        .get_deployment(by_user(get("current")))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(current.deployment, second.deployment);
    assert_eq!(current.manifest.unwrap().assets.len(), 3);
    let old = client
        .get_deployment(by_user(get(&deployment.deployment_id)))
        .await
        .unwrap()
        .into_inner();
    assert!(!old.deployment.unwrap().current);
}

#[tokio::test]
async fn validate_only_returns_the_diff_and_changes_nothing() {
    let world = World::start().await;
    world.deploy(chain()).await;
    let mut changed = chain();
    changed.assets[0].priority = 7;
    changed.assets.remove(2);
    let request = DeployRequest {
        validate_only: true,
        ..deploy_request("", changed)
    };
    let answer = world
        .client()
        .deploy(by_user(request))
        .await
        .unwrap()
        .into_inner();
    let changes = answer.diff.unwrap().changes;
    let summary: Vec<(&str, ChangeKind)> = changes
        .iter()
        .map(|c| (c.key.as_str(), c.change()))
        .collect();
    assert_eq!(
        summary,
        [("n/a", ChangeKind::Changed), ("n/c", ChangeKind::Removed)]
    );
    assert_eq!(changes[0].fields[0].path, "priority");
    assert!(answer.deployment.unwrap().deployment_id.is_empty());
    assert_eq!(
        (
            world.count("deployments").await,
            world.count("events").await
        ),
        (1, 1)
    );
}

#[tokio::test]
async fn all_faults_are_returned_with_their_paths_and_nothing_is_stored() {
    let world = World::start().await;
    let mut client = world.client();
    let broken = manifest(vec![
        asset("n/a", &["n/z"]),
        asset("Bad", &[]),
        asset("n/a", &[]),
    ]);
    let status = refused(
        client.deploy(by_user(deploy_request("r", broken))).await,
        Reason::ManifestInvalid,
        "more",
    );
    let violations = status.get_details_bad_request().unwrap().field_violations;
    let paths: Vec<&str> = violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "assets[1].key",
            "assets[2].key",
            "assets[0].dependencies[0].upstream"
        ]
    );

    let cycle = manifest(vec![asset("n/a", &["n/b"]), asset("n/b", &["n/a"])]);
    let cycle = client.deploy(by_user(deploy_request("r", cycle))).await;
    refused(cycle, Reason::CycleDetected, "n/a -> n/b -> n/a");
    let self_dependency = client
        .deploy(by_user(deploy_request(
            "r",
            manifest(vec![asset("n/a", &["n/a"])]),
        )))
        .await;
    refused(self_dependency, Reason::CycleDetected, "n/a -> n/a");
    let mut long = chain();
    long.assets[0].description = "x".repeat(1 << 20);
    refused(
        client.deploy(by_user(deploy_request("r", long))).await,
        Reason::MessageTooLarge,
        "manifest_uri",
    );
    refused(
        client.deploy(by_user(deploy_request("", chain()))).await,
        Reason::RequestIdRequired,
        "request_id",
    );
    let without_manifest = DeployRequest {
        source: None,
        ..deploy_request("r", chain())
    };
    refused(
        client.deploy(by_user(without_manifest)).await,
        Reason::InvalidField,
        "manifest",
    );
    assert_eq!(
        (
            world.count("deployments").await,
            world.count("events").await
        ),
        (0, 0)
    );
}

#[tokio::test]
async fn list_faults_returns_all_faults() {
    let world = World::start().await;
    let mut client = world.client();
    let broken = || {
        manifest(
            (0..300)
                .map(|n| asset(&format!("n/a{n}"), &["n/ghost"]))
                .collect(),
        )
    };
    let refusal = client.deploy(by_user(deploy_request("r", broken()))).await;
    let message = "and 299 more faults; validate_only with list_faults returns all";
    refused(refusal, Reason::ManifestInvalid, message);
    let validated = DeployRequest {
        validate_only: true,
        ..deploy_request("", broken())
    };
    refused(
        client.deploy(by_user(validated.clone())).await,
        Reason::ManifestInvalid,
        message,
    );

    let listing = DeployRequest {
        list_faults: true,
        ..validated
    };
    let answer = client
        .deploy(by_user(listing.clone()))
        .await
        .unwrap()
        .into_inner();
    let fields: Vec<&str> = answer
        .faults
        .iter()
        .map(|fault| fault.field.as_str())
        .collect();
    let expected: Vec<String> = (0..300)
        .map(|n| format!("assets[{n}].dependencies[0].upstream"))
        .collect();
    assert_eq!(fields, expected);
    assert!(
        answer.faults[299].description.contains("n/ghost"),
        "{:?}",
        answer.faults[299]
    );
    assert!(answer.deployment.is_none() && answer.diff.is_none());

    let deploying = DeployRequest {
        validate_only: false,
        request_id: "r".to_owned(),
        ..listing
    };
    refused(
        client.deploy(by_user(deploying)).await,
        Reason::InvalidField,
        "list_faults",
    );
    let good = DeployRequest {
        validate_only: true,
        list_faults: true,
        ..deploy_request("", chain())
    };
    let answer = client.deploy(by_user(good)).await.unwrap().into_inner();
    assert!(
        answer.faults.is_empty() && answer.diff.is_some(),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_stale_version_is_refused() {
    let world = World::start().await;
    let mut client = world.client();
    world.deploy(chain()).await;
    let expect = |version, id: &str| DeployRequest {
        expected_version: version,
        ..deploy_request(id, chain())
    };
    refused(
        client.deploy(by_user(expect(7, "r2"))).await,
        Reason::VersionConflict,
        "has version 1, not 7",
    );
    let answer = client
        .deploy(by_user(expect(1, "r3")))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.deployment.unwrap().version, 2);
}

#[tokio::test]
async fn concurrent_deployments_get_distinct_versions() {
    let world = World::start().await;
    let deploys = (0..8).map(|n| {
        let mut client = world.client();
        let mut manifest = chain();
        manifest.code_version = n.to_string();
        // Every request id is used by two concurrent calls.
        async move {
            client
                .deploy(by_user(deploy_request(
                    &format!("r{}", n / 2 * 2),
                    manifest,
                )))
                .await
        }
    });
    let answers = futures::future::join_all(deploys).await;
    let mut versions: Vec<u64> = answers
        .into_iter()
        .flatten()
        .map(|answer| answer.into_inner().deployment.unwrap().version)
        .collect();
    versions.sort_unstable();
    assert_eq!(
        versions,
        [1, 2, 3, 4],
        "the other four used a request_id that was already used"
    );
    assert_eq!(world.count("events").await, 4);
}

#[tokio::test]
async fn deployments_of_other_tenants_are_not_found() {
    let world = World::start().await;
    let id = world
        .deploy(chain())
        .await
        .deployment
        .unwrap()
        .deployment_id;
    let mut client = world.client();
    for (id_requested, part) in [
        (id.as_str(), "there is no deployment"),
        ("current", "nothing is deployed"),
        ("x", "is not a"),
    ] {
        let foreign = GetDeploymentRequest {
            tenant: "other".into(),
            ..get(id_requested)
        };
        refused(
            client.get_deployment(by_user_of("other", foreign)).await,
            Reason::DeploymentNotFound,
            part,
        );
    }
    let elsewhere = GetDeploymentRequest {
        workspace: "test".into(),
        ..get(&id)
    };
    refused(
        client.get_deployment(by_user(elsewhere)).await,
        Reason::DeploymentNotFound,
        "there is no deployment",
    );
    let forged = client.get_deployment(by_user_of("other", get(&id))).await;
    refused(
        forged,
        Reason::TenantMismatch,
        "does not exist or is not open",
    );
}

#[tokio::test]
async fn deployments_are_listed_page_by_page_and_filtered() {
    let world = World::start().await;
    for n in 0..5 {
        let mut manifest = chain();
        manifest.code_version = n.to_string();
        world.deploy(manifest).await;
    }
    let mut client = world.client();
    let (mut token, mut seen) = (String::new(), Vec::new());
    loop {
        let request = ListDeploymentsRequest {
            tenant: TENANT.into(),
            workspace: WORKSPACE.into(),
            page_size: 2,
            page_token: token.clone(),
            ..Default::default()
        };
        let page = client
            .list_deployments(by_user(request))
            .await
            .unwrap()
            .into_inner();
        seen.extend(page.deployments.iter().map(|deployment| deployment.version));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, [5, 4, 3, 2, 1]);
    let list = |page_token: &str, filter: &str| ListDeploymentsRequest {
        tenant: TENANT.into(),
        workspace: WORKSPACE.into(),
        page_token: page_token.into(),
        filter: filter.into(),
        ..Default::default()
    };
    let forged = Digest::of("forged").to_string();
    refused(
        client.list_deployments(by_user(list(&forged, ""))).await,
        Reason::InvalidPageToken,
        "page_token",
    );
    refused(
        client
            .list_deployments(by_user(list("", "version = 1")))
            .await,
        Reason::InvalidFilter,
        "`version` cannot be filtered by",
    );
    let filtered = client
        .list_deployments(by_user(list("", "code_version = 3")))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        filtered
            .deployments
            .iter()
            .map(|deployment| deployment.version)
            .collect::<Vec<_>>(),
        [4]
    );
    assert_eq!(filtered.next_page_token, "");
}

#[tokio::test]
async fn assets_and_their_lineage_are_returned() {
    let world = World::start().await;
    world.deploy(chain()).await;
    let mut client = world.client();
    let asset = |name: &str| GetAssetRequest {
        tenant: TENANT.into(),
        workspace: WORKSPACE.into(),
        namespace: "n".into(),
        name: name.into(),
        ..Default::default()
    };
    let found = client
        .get_asset(by_user(asset("b")))
        .await
        .unwrap()
        .into_inner()
        .asset
        .unwrap();
    assert_eq!(
        (found.upstream_keys, found.downstream_keys),
        (vec!["n/a".to_owned()], vec!["n/c".to_owned()])
    );
    refused(
        client.get_asset(by_user(asset("bb"))).await,
        Reason::AssetNotFound,
        "did you mean",
    );
    refused(
        client.get_asset(by_user(asset("B B"))).await,
        Reason::AssetNotFound,
        "refused",
    );

    let list = |selection: &[&str]| ListAssetsRequest {
        tenant: TENANT.into(),
        workspace: WORKSPACE.into(),
        selection: selection.iter().map(ToString::to_string).collect(),
        page_size: 2,
        ..Default::default()
    };
    let page = client
        .list_assets(by_user(list(&[])))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(page.assets.len(), 2);
    let rest = ListAssetsRequest {
        page_token: page.next_page_token.clone(),
        ..list(&[])
    };
    let rest = client
        .list_assets(by_user(rest))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (
            rest.assets[0].asset_key.as_str(),
            rest.next_page_token.as_str()
        ),
        ("n/c", "")
    );
    let mixed = ListAssetsRequest {
        page_token: page.next_page_token,
        ..list(&["n/a+"])
    };
    refused(
        client.list_assets(by_user(mixed)).await,
        Reason::InvalidPageToken,
        "page_token",
    );
    refused(
        client.list_assets(by_user(list(&["+"]))).await,
        Reason::SelectionInvalid,
        "selection[0]",
    );

    let graph = |selection: &[&str], max_assets| GetLineageRequest {
        tenant: TENANT.into(),
        workspace: WORKSPACE.into(),
        selection: selection.iter().map(ToString::to_string).collect(),
        max_assets,
        ..Default::default()
    };
    let near = client
        .get_lineage(by_user(graph(&["+n/b"], 0)))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (near.assets.len(), near.edges.len(), near.truncated),
        (2, 1, false)
    );
    let truncated = client
        .get_lineage(by_user(graph(&[], 2)))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (
            truncated.assets.len(),
            truncated.assets[0].asset_key.as_str(),
            truncated.truncated
        ),
        (2, "n/a", true)
    );
    refused(
        client.get_lineage(by_user(graph(&["tag:x"], 0))).await,
        Reason::SelectionEmpty,
        "no asset",
    );
}

#[tokio::test]
async fn definitions_without_effect_are_reported() {
    let world = World::start().await;
    let mut client = world.client();
    let mut given = chain();
    given.assets[1].freshness = Some(FreshnessPolicy::default());
    let mut preview = deploy_request("", given.clone());
    preview.validate_only = true;
    for request in [preview, deploy_request("r1", given.clone())] {
        let answer = client.deploy(by_user(request)).await.unwrap().into_inner();
        assert_eq!(answer.warnings.len(), 1);
        assert_eq!(answer.warnings[0].field, "assets[1].freshness");
        assert!(answer.warnings[0].description.contains("not served yet"));
    }
    let repeat = client.deploy(by_user(deploy_request("r1", given))).await;
    assert_eq!(repeat.unwrap().into_inner().warnings.len(), 1);
    let plain = client.deploy(by_user(deploy_request("r2", chain()))).await;
    assert_eq!(plain.unwrap().into_inner().warnings, []);
}
