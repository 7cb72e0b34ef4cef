//! GetAsset: returns one asset of a deployment.

use servo_mesh::{Error, Reason};
use servo_model::AssetKey;
use servo_proto::v1::{GetAssetRequest, GetAssetResponse};

use super::Planner;
use super::support::parse::scope;
use crate::core::lineage;

pub(super) async fn get_asset(
    planner: &Planner,
    request: GetAssetRequest,
) -> Result<GetAssetResponse, Error> {
    let scope = scope(&request)?;
    let key = AssetKey::new(&request.namespace, &request.name)
        .map_err(|error| Error::new(Reason::AssetNotFound, error.to_string()))?;
    let mut tx = planner.begin(&scope).await?;
    let found = planner
        .deployment(&mut tx, &scope, &request.deployment_id)
        .await?;
    let asset = found.graph.find(&key).ok_or_else(|| {
        let key = key.canonical();
        let suggestion = found.graph.did_you_mean(&key);
        Error::new(
            Reason::AssetNotFound,
            format!("the deployment has no asset `{key}`{suggestion}"),
        )
    })?;
    let moment = planner.moment(&mut tx, &scope, &found.graph).await?;
    Ok(GetAssetResponse {
        asset: Some(lineage::asset(&found.graph, &found.id, asset, &moment)),
    })
}
