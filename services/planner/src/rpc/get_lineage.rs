//! GetLineage: returns the graph around a selection.

use prost::Message;
use servo_mesh::{Error, Reason};
use servo_model::limits::{ASSETS_PER_MANIFEST_MAX, MESSAGE_BYTES_MAX};
use servo_proto::v1::{GetLineageRequest, GetLineageResponse};

use super::Planner;
use super::support::parse::scope;
use crate::core::lineage;

const ASSETS_DEFAULT: usize = 300;

pub(super) async fn get_lineage(
    planner: &Planner,
    request: GetLineageRequest,
) -> Result<GetLineageResponse, Error> {
    let scope = scope(&request)?;
    let count = match request.max_assets as usize {
        0 => ASSETS_DEFAULT,
        count => count.min(ASSETS_PER_MANIFEST_MAX),
    };
    let mut tx = planner.begin(&scope).await?;
    let found = planner
        .deployment(&mut tx, &scope, &request.deployment_id)
        .await?;
    let graph = &found.graph;
    let selected = if request.selection.is_empty() {
        (0..).take(graph.keys.len()).collect()
    } else {
        graph.select("selection", &request.selection)?
    };
    if selected.is_empty() {
        return Err(Error::new(
            Reason::SelectionEmpty,
            "selection: means no asset of this deployment",
        ));
    }
    let moment = planner.moment(&mut tx, &scope, graph).await?;
    let assets = lineage::nearest(graph, &selected, count);
    let mut answer = GetLineageResponse {
        truncated: assets.len() < selected.len(),
        edges: lineage::edges(graph, &assets),
        assets: assets
            .iter()
            .map(|asset| lineage::asset(graph, &found.id, *asset, &moment))
            .collect(),
    };
    if answer.encoded_len() > MESSAGE_BYTES_MAX {
        // Omits the definitions of a graph this large, because its shape matters more; GetAsset
        // returns each definition.
        answer
            .assets
            .iter_mut()
            .for_each(|asset| asset.definition = None);
    }
    Ok(answer)
}
