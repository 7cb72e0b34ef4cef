//! ExpandPartitions: the partitions that a selection stands for, a page at a time.

use servo_mesh::Error;
use servo_mesh::paging::page_size;
use servo_model::Digest;
use servo_model::partitioning::Moment;
use servo_proto::v1::{ExpandPartitionsRequest, ExpandPartitionsResponse};

use super::context::{Planner, scope, working};
use super::staleness::{Judged, judged, staleness};
use crate::core::deployed::Deployed;
use crate::core::refusal::Refusal;
use crate::core::{canonical, expand};

const KEYS_DEFAULT: usize = 1_000;
const KEYS_MAX: usize = 10_000;

pub(super) async fn expand_partitions(
    planner: &Planner,
    request: ExpandPartitionsRequest,
) -> Result<ExpandPartitionsResponse, Error> {
    let scope = scope(&request)?;
    let size = page_size(request.page_size, KEYS_DEFAULT, KEYS_MAX)?;
    let mut tx = planner.begin(&scope).await?;
    // Later pages stay with the deployment and the question of the first one.
    let question = ExpandPartitionsRequest {
        page_size: 0,
        page_token: String::new(),
        ..request.clone()
    };
    let question = canonical::canonical(&question, "ExpandPartitionsRequest")
        .map_err(|error| Error::bad_field("partitions", error.to_string()))?;
    let question = Digest::of(question).to_string();
    let list = ["partitions", &scope.tenant, &scope.workspace, &question];
    let cursor = planner.pages.read(&list, &request.page_token)?;
    let place = cursor.as_deref().and_then(|cursor| cursor.split_once(' '));
    let (first, deployment) = match place {
        Some((first, deployment)) => (first.parse().unwrap_or(0), deployment.to_owned()),
        None => (0, request.deployment_id.clone()),
    };
    let found = planner.deployment(&mut tx, &scope, &deployment).await?;
    let moment = planner.moment(&mut tx, &scope, &found.graph).await?;
    let count = if request.count_only { 0 } else { size as u64 };
    let graph = found.graph.clone();
    let expanded = working(move || Page::read(&graph, &request, &moment, first, count));
    let Page {
        total,
        keys: partition_keys,
        judged,
    } = expanded.await??;
    let staleness = staleness(&mut tx, &scope, &judged).await?;
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

/// Keys, and for each of them what it stands for and what that is made from, when it was asked for.
struct Page {
    total: u64,
    keys: Vec<String>,
    judged: Vec<Judged>,
}

impl Page {
    fn read(
        deployed: &Deployed,
        request: &ExpandPartitionsRequest,
        moment: &Moment,
        first: u64,
        count: u64,
    ) -> Result<Page, Refusal> {
        let (selection, partitions) = (&request.selection, request.partitions.as_ref());
        let asset = match request.with_staleness {
            true => Some(expand::only_asset(deployed, selection)?),
            false => None,
        };
        let expanded = match asset.filter(|asset| deployed.partitioning(*asset).is_none()) {
            Some(_) => expand::Expanded::Whole,
            None => expand::expand(deployed, selection, partitions, moment)?,
        };
        let keys = expanded.page(first, count, request.newest_first);
        let judged = asset.map_or_else(
            || Ok(Vec::new()),
            |asset| judged(deployed, asset, &keys, moment),
        )?;
        Ok(Page {
            total: expanded.len(),
            keys,
            judged,
        })
    }
}
