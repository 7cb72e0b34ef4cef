//! What is deployed, what a run of it would do, and the versions of its data.

use futures::FutureExt;
use prost::Message;
use servo_model::limits::MANIFEST_INLINE_BYTES_MAX;
use servo_proto::json;
use servo_proto::v1 as pb;
use servo_proto::v1::deploy_request::Source;

use super::artifacts::upload;
use super::call::{Call, Many, One, entries};
use super::{PAGE_SIZE, Workspace, given};
use crate::client::Client;
use crate::error::{Error, Violation};

impl Workspace {
    /// Makes the manifest the workspace's current deployment, or only says what would change (`validate_only`). The
    /// refusal of a manifest names every fault of it.
    pub fn deploy(
        &self,
        manifest: pb::Manifest,
    ) -> Call<pb::DeployRequest, One<pb::DeployResponse>> {
        let asked = pb::DeployRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            source: Some(Source::Manifest(manifest)),
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            async move {
                let asked = small(&client, asked).await?;
                match client.planner().deploy(asked.clone()).await {
                    Ok(answer) => Ok(answer.into_inner()),
                    Err(refused) => Err(with_all_faults(&client, asked, refused.into()).await),
                }
            }
            .boxed()
        })
    }

    /// The current deployment, or another one (`deployment_id`).
    pub fn deployment(&self) -> Call<pb::GetDeploymentRequest, One<pb::Deployment>> {
        let asked = pb::GetDeploymentRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            deployment_id: "current".to_owned(),
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            async move {
                let found = client.planner().get_deployment(asked).await?.into_inner();
                given(found.deployment, "deployment")
            }
            .boxed()
        })
    }

    /// One asset by its key, `namespace/name`.
    pub fn asset(&self, key: &str) -> Call<pb::GetAssetRequest, One<pb::Asset>> {
        // A key without a `/` is refused by the server, which says how to write it.
        let (namespace, name) = key.split_once('/').unwrap_or((key, ""));
        let asked = pb::GetAssetRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            async move {
                given(
                    client.planner().get_asset(asked).await?.into_inner().asset,
                    "asset",
                )
            }
            .boxed()
        })
    }

    /// The assets of a selection, or all of them.
    pub fn assets(&self, selection: &[&str]) -> Call<pb::ListAssetsRequest, Many<pb::Asset>> {
        let asked = pb::ListAssetsRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            selection: owned(selection),
            page_size: PAGE_SIZE,
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            entries(client, asked, |client, asked, page_token| async move {
                let asked = pb::ListAssetsRequest {
                    page_token,
                    ..asked
                };
                let page = client.planner().list_assets(asked).await?.into_inner();
                Ok((page.assets, page.next_page_token))
            })
        })
    }

    /// The graph around a selection, or the whole.
    pub fn lineage(
        &self,
        selection: &[&str],
    ) -> Call<pb::GetLineageRequest, One<pb::GetLineageResponse>> {
        let asked = pb::GetLineageRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            selection: owned(selection),
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            async move { Ok(client.planner().get_lineage(asked).await?.into_inner()) }.boxed()
        })
    }

    /// What [`Workspace::trigger`] would do; at most 100 tasks are told one by one, or `max_tasks`.
    pub fn plan(
        &self,
        run: impl Into<pb::RunSpec>,
    ) -> Call<pb::PlanRunRequest, One<pb::PlanRunResponse>> {
        let asked = pb::PlanRunRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            spec: Some(run.into()),
            max_tasks: 100,
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            async move { Ok(client.planner().plan_run(asked).await?.into_inner()) }.boxed()
        })
    }

    /// Versions of data, newest first.
    pub fn materializations(
        &self,
    ) -> Call<pb::ListMaterializationsRequest, Many<pb::Materialization>> {
        let asked = pb::ListMaterializationsRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            page_size: PAGE_SIZE,
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            entries(client, asked, |client, asked, page_token| async move {
                let asked = pb::ListMaterializationsRequest {
                    page_token,
                    ..asked
                };
                let page = client
                    .scheduler()
                    .list_materializations(asked)
                    .await?
                    .into_inner();
                Ok((page.materializations, page.next_page_token))
            })
        })
    }
}

/// A refusal has no room for many faults, and says so without a field. An answer has.
async fn with_all_faults(client: &Client, asked: pb::DeployRequest, mut refused: Error) -> Error {
    let Error::Refused { violations, .. } = &mut refused else {
        return refused;
    };
    if violations.last().is_some_and(|last| last.field.is_empty()) {
        let request_id = String::new();
        let asked = pb::DeployRequest {
            validate_only: true,
            list_faults: true,
            request_id,
            ..asked
        };
        let listed = client
            .planner()
            .deploy(asked)
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

/// The same request, its manifest uploaded first if it is too large to be sent inline.
async fn small(client: &Client, asked: pb::DeployRequest) -> Result<pb::DeployRequest, Error> {
    let manifest = match &asked.source {
        Some(Source::Manifest(manifest)) if manifest.encoded_len() > MANIFEST_INLINE_BYTES_MAX => {
            manifest
        }
        _ => return Ok(asked),
    };
    let text =
        json::to_json("Manifest", manifest).map_err(|fault| Error::Config(fault.to_string()))?;
    let first = pb::UploadArtifactRequest {
        tenant: asked.tenant.clone(),
        workspace: asked.workspace.clone(),
        kind: pb::ArtifactKind::Manifest.into(),
        ..Default::default()
    };
    let digest = upload(client, first, text.into()).await?;
    let source = Some(Source::ManifestUri(format!("artifact:{digest}")));
    Ok(pb::DeployRequest {
        source,
        manifest_digest: digest,
        ..asked
    })
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}
