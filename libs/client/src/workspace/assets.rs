//! Deployments, plans and materializations.

use futures::FutureExt;
use prost::Message;
use servo_model::limits::MANIFEST_INLINE_BYTES_MAX;
use servo_proto::json;
use servo_proto::v1 as pb;
use servo_proto::v1::deploy_request::Source;

use super::artifacts::upload;
use super::call::{Call, ItemStream, ResponseFuture, entries};
use super::{PAGE_SIZE, Workspace, required};
use crate::client::Client;
use crate::error::{Error, Violation};

impl Workspace {
    /// Makes the manifest the workspace's active deployment, or only reports the changes
    /// (`validate_only`). The refusal of a manifest lists all its faults.
    pub fn deploy(
        &self,
        manifest: pb::Manifest,
    ) -> Call<pb::DeployRequest, ResponseFuture<pb::DeployResponse>> {
        let request = pb::DeployRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            source: Some(Source::Manifest(manifest)),
            ..Default::default()
        };
        self.call(request, |client, request| {
            async move {
                let request = with_uploaded_manifest(&client, request).await?;
                match client.planner().deploy(request.clone()).await {
                    Ok(answer) => Ok(answer.into_inner()),
                    Err(refused) => Err(with_all_faults(&client, request, refused.into()).await),
                }
            }
            .boxed()
        })
    }

    /// The active deployment, or another one (`deployment_id`).
    pub fn deployment(&self) -> Call<pb::GetDeploymentRequest, ResponseFuture<pb::Deployment>> {
        let request = pb::GetDeploymentRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            deployment_id: "current".to_owned(),
            ..Default::default()
        };
        self.call(request, |client, request| {
            async move {
                let found = client.planner().get_deployment(request).await?.into_inner();
                required(found.deployment, "deployment")
            }
            .boxed()
        })
    }

    /// ResponseFuture asset by its key, `namespace/name`.
    pub fn asset(&self, key: &str) -> Call<pb::GetAssetRequest, ResponseFuture<pb::Asset>> {
        // The server refuses a key without a `/` and explains the format.
        let (namespace, name) = key.split_once('/').unwrap_or((key, ""));
        let request = pb::GetAssetRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Default::default()
        };
        self.call(request, |client, request| {
            async move {
                required(
                    client
                        .planner()
                        .get_asset(request)
                        .await?
                        .into_inner()
                        .asset,
                    "asset",
                )
            }
            .boxed()
        })
    }

    /// The assets of a selection, or all of them.
    pub fn assets(&self, selection: &[&str]) -> Call<pb::ListAssetsRequest, ItemStream<pb::Asset>> {
        let request = pb::ListAssetsRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            selection: owned(selection),
            page_size: PAGE_SIZE,
            ..Default::default()
        };
        self.call(request, |client, request| {
            entries(client, request, |client, request, page_token| async move {
                let request = pb::ListAssetsRequest {
                    page_token,
                    ..request
                };
                let page = client.planner().list_assets(request).await?.into_inner();
                Ok((page.assets, page.next_page_token))
            })
        })
    }

    /// The graph around a selection, or all of it.
    pub fn lineage(
        &self,
        selection: &[&str],
    ) -> Call<pb::GetLineageRequest, ResponseFuture<pb::GetLineageResponse>> {
        let request = pb::GetLineageRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            selection: owned(selection),
            ..Default::default()
        };
        self.call(request, |client, request| {
            async move { Ok(client.planner().get_lineage(request).await?.into_inner()) }.boxed()
        })
    }

    /// The plan that [`Workspace::trigger`] would run, with at most 100 tasks in detail, or
    /// `max_tasks`.
    pub fn plan(
        &self,
        run: impl Into<pb::RunSpec>,
    ) -> Call<pb::PlanRunRequest, ResponseFuture<pb::PlanRunResponse>> {
        let request = pb::PlanRunRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            spec: Some(run.into()),
            max_tasks: 100,
            ..Default::default()
        };
        self.call(request, |client, request| {
            async move { Ok(client.planner().plan_run(request).await?.into_inner()) }.boxed()
        })
    }

    /// Materializations, newest first.
    pub fn materializations(
        &self,
    ) -> Call<pb::ListMaterializationsRequest, ItemStream<pb::Materialization>> {
        let request = pb::ListMaterializationsRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            page_size: PAGE_SIZE,
            ..Default::default()
        };
        self.call(request, |client, request| {
            entries(client, request, |client, request, page_token| async move {
                let request = pb::ListMaterializationsRequest {
                    page_token,
                    ..request
                };
                let page = client
                    .scheduler()
                    .list_materializations(request)
                    .await?
                    .into_inner();
                Ok((page.materializations, page.next_page_token))
            })
        })
    }
}

/// A refusal can carry only some faults and marks the omission with an entry without a field. In
/// that case fetches the complete list, which fits into a response.
async fn with_all_faults(client: &Client, request: pb::DeployRequest, mut refused: Error) -> Error {
    let Error::Refused { violations, .. } = &mut refused else {
        return refused;
    };
    if violations.last().is_some_and(|last| last.field.is_empty()) {
        let request_id = String::new();
        let request = pb::DeployRequest {
            validate_only: true,
            list_faults: true,
            request_id,
            ..request
        };
        let listed = client
            .planner()
            .deploy(request)
            .await
            .map(|answer| answer.into_inner().faults);
        if let Some(faults) = listed.ok().filter(|faults| !faults.is_empty()) {
            let violation =
                |pb::ManifestFault { field, description }| Violation { field, description };
            *violations = faults.into_iter().map(violation).collect();
        }
    }
    refused
}

/// The request with its manifest uploaded first, if that is too large to be sent inline.
async fn with_uploaded_manifest(
    client: &Client,
    request: pb::DeployRequest,
) -> Result<pb::DeployRequest, Error> {
    let manifest = match &request.source {
        Some(Source::Manifest(manifest)) if manifest.encoded_len() > MANIFEST_INLINE_BYTES_MAX => {
            manifest
        }
        _ => return Ok(request),
    };
    let text =
        json::to_json("Manifest", manifest).map_err(|fault| Error::Config(fault.to_string()))?;
    let first = pb::UploadArtifactRequest {
        tenant: request.tenant.clone(),
        workspace: request.workspace.clone(),
        kind: pb::ArtifactKind::Manifest.into(),
        ..Default::default()
    };
    let digest = upload(client, first, text.into()).await?;
    let source = Some(Source::ManifestUri(format!("artifact:{digest}")));
    Ok(pb::DeployRequest {
        source,
        manifest_digest: digest,
        ..request
    })
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}
