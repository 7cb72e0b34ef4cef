//! ExpandPartitions: lists the partitions of a selection, a page at a time.

use prost::Message;
use servo_mesh::Error;
use servo_mesh::paging::page_size;
use servo_model::Digest;
use servo_model::partitioning::Moment;
use servo_proto::mesh::v1::{ExpandPartitionsRequest, ExpandPartitionsResponse};

use super::Planner;
use super::support::blocking::run_blocking;
use super::support::parse::scope;
use super::support::staleness::{StalenessInputs, staleness, staleness_inputs};
use crate::core::deployment_graph::DeploymentGraph;
use crate::core::expand;
use crate::core::refusal::Refusal;

const KEYS_DEFAULT: usize = 1_000;
const KEYS_MAX: usize = 10_000;

pub(super) async fn expand_partitions(
    planner: &Planner,
    request: ExpandPartitionsRequest,
) -> Result<ExpandPartitionsResponse, Error> {
    let scope = scope(&request)?;
    let size = page_size(request.page_size, KEYS_DEFAULT, KEYS_MAX)?;
    let mut tx = planner.begin(&scope).await?;
    // Page tokens are bound to the request, and name the deployment of the first page, so later
    // pages use the same deployment.
    let first_page = ExpandPartitionsRequest {
        page_size: 0,
        page_token: String::new(),
        ..request.clone()
    };
    let request_digest = Digest::of(first_page.encode_to_vec()).to_string();
    let list = [
        "partitions",
        scope.tenant.as_str(),
        scope.workspace.as_str(),
        &request_digest,
    ];
    let cursor = planner.pages.read(&list, &request.page_token)?;
    let position = cursor.as_deref().and_then(|cursor| cursor.split_once(' '));
    let (first, deployment) = match position {
        Some((first, deployment)) => (first.parse().unwrap_or(0), deployment.to_owned()),
        None => (0, request.deployment_id.clone()),
    };
    let found = planner.deployment(&mut tx, &scope, &deployment).await?;
    let moment = planner.moment(&mut tx, &scope, &found.graph).await?;
    let count = if request.count_only { 0 } else { size as u64 };
    let graph = found.graph.clone();
    let expanded = run_blocking(move || KeysPage::read(&graph, &request, &moment, first, count));
    let KeysPage {
        total,
        keys: partition_keys,
        staleness_inputs,
    } = expanded.await??;
    let staleness = staleness(&mut tx, &scope, &staleness_inputs).await?;
    drop(tx);
    let after = first + partition_keys.len() as u64;
    let next = (count > 0 && after < total)
        .then(|| planner.pages.write(&list, &format!("{after} {}", found.id)));
    Ok(ExpandPartitionsResponse {
        partition_keys,
        total,
        deployment_id: found.id,
        next_page_token: next.unwrap_or_default(),
        staleness,
    })
}

/// Keys of one page and, if requested, what decides whether each of them is stale.
struct KeysPage {
    total: u64,
    keys: Vec<String>,
    staleness_inputs: Vec<StalenessInputs>,
}

impl KeysPage {
    fn read(
        graph: &DeploymentGraph,
        request: &ExpandPartitionsRequest,
        moment: &Moment,
        first: u64,
        count: u64,
    ) -> Result<KeysPage, Refusal> {
        let (selection, partitions) = (&request.selection, request.partitions.as_ref());
        let asset = if request.with_staleness {
            Some(expand::only_asset(graph, selection)?)
        } else {
            None
        };
        let expanded = match asset.filter(|asset| graph.partitioning(*asset).is_none()) {
            Some(_) => expand::Expanded::Whole,
            None => expand::expand(graph, selection, partitions, moment)?,
        };
        let keys = expanded.page(first, count, request.newest_first);
        let staleness_inputs = asset.map_or_else(
            || Ok(Vec::new()),
            |asset| staleness_inputs(graph, asset, &keys, moment),
        )?;
        Ok(KeysPage {
            total: expanded.len(),
            keys,
            staleness_inputs,
        })
    }
}
