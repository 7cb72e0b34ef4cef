//! GetDeployment: one deployment, or the current one.

use prost::Message;
use servo_mesh::Error;
use servo_model::limits::MANIFEST_INLINE_BYTES_MAX;
use servo_proto::v1::{GetDeploymentRequest, GetDeploymentResponse};

use super::context::{Planner, find_deployment, scope, stored};
use crate::store::deployments;

pub(super) async fn get_deployment(
    planner: &Planner,
    request: GetDeploymentRequest,
) -> Result<GetDeploymentResponse, Error> {
    let scope = scope(&request)?;
    let mut tx = planner.begin(&scope).await?;
    let row = find_deployment(&mut tx, &scope, &request.deployment_id).await?;
    let manifest = match request.include_manifest {
        true => {
            let digest = row.digest().map_err(stored)?;
            let manifest = deployments::manifest(&mut tx, &scope, &digest)
                .await
                .map_err(stored)?;
            Some(manifest).filter(|manifest| manifest.encoded_len() <= MANIFEST_INLINE_BYTES_MAX)
        }
        false => None,
    };
    Ok(GetDeploymentResponse {
        deployment: Some(row.message().map_err(stored)?),
        manifest,
    })
}
