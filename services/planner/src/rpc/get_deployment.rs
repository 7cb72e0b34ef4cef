//! GetDeployment: returns a deployment by id, or the current one.

use prost::Message;
use servo_mesh::Error;
use servo_model::limits::MANIFEST_INLINE_BYTES_MAX;
use servo_proto::v1::{GetDeploymentRequest, GetDeploymentResponse};

use super::support::errors::store_error;
use super::support::parse::scope;
use super::{Planner, find_deployment};
use crate::store::deployments;

pub(super) async fn get_deployment(
    planner: &Planner,
    request: GetDeploymentRequest,
) -> Result<GetDeploymentResponse, Error> {
    let scope = scope(&request)?;
    let mut tx = planner.begin(&scope).await?;
    let row = find_deployment(&mut tx, &scope, &request.deployment_id).await?;
    let manifest = if request.include_manifest {
        let digest = row.digest().map_err(store_error)?;
        let manifest = deployments::find_manifest(&mut tx, &scope, &digest)
            .await
            .map_err(store_error)?;
        Some(manifest).filter(|manifest| manifest.encoded_len() <= MANIFEST_INLINE_BYTES_MAX)
    } else {
        None
    };
    Ok(GetDeploymentResponse {
        deployment: Some(row.message().map_err(store_error)?),
        manifest,
    })
}
