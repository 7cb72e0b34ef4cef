//! ListPartitions: the partitions of an asset. The planner knows which partitions exist and whether
//! they are stale; the scheduler adds the facts of its rows.

use servo_mesh::filter::Filter;
use servo_mesh::{Error, Reason};
use servo_model::AssetKey;
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1 as pb;
use tonic::Status;

use super::Scheduler;
use super::support::{pages, parse, wait};
use crate::reads::filters;
use crate::reads::live_partitions;
use crate::reads::partitions::{self, NamedPartition};

/// How many pages of the planner are read for one that is not empty, when the filter excludes most
/// partitions.
const PAGES_READ_MAX: usize = 20;

pub(super) async fn list_partitions(
    scheduler: &Scheduler,
    request: pb::ListPartitionsRequest,
) -> Result<pb::ListPartitionsResponse, Status> {
    let tenant = parse::tenant(&request.tenant)?;
    let filter = Filter::parse(&request.filter, &filters::PARTITIONS)?;
    let asset = asset_key(&request.namespace, &request.name)?;
    wait::for_event(scheduler, &request.wait_for_event_id).await?;
    let size = pages::size(request.page_size)?;
    let list = [
        "partitions",
        &request.tenant,
        &request.workspace,
        &asset,
        &request.filter,
    ];
    let mut token = scheduler
        .tokens
        .read(&list, &request.page_token)?
        .unwrap_or_default();
    let scope = (&tenant, request.workspace.as_str());
    let live = live_partitions::find(&scheduler.reads, scope.0, scope.1).await?;
    let mut listed = Vec::new();
    for _ in 0..PAGES_READ_MAX {
        let page = expand(scheduler, &request, &asset, &filter, size, token).await?;
        token = page.next_page_token;
        let mut staleness = page.staleness.into_iter();
        let named = page
            .partition_keys
            .into_iter()
            .map(|partition_key| NamedPartition {
                asset_key: asset.clone(),
                partition_key,
                staleness: staleness.next().unwrap_or_default(),
            });
        let shown = partitions::show(&scheduler.reads, scope, &live, named.collect()).await?;
        listed.extend(
            shown
                .into_iter()
                .filter(|partition| filter.matches(partition)),
        );
        if token.is_empty() || !listed.is_empty() {
            break;
        }
    }
    let next = Some(token).filter(|token| !token.is_empty());
    Ok(pb::ListPartitionsResponse {
        partitions: listed,
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

/// A malformed key names an asset that cannot exist.
pub(super) fn asset_key(namespace: &str, name: &str) -> Result<String, Error> {
    let key = AssetKey::new(namespace, name);
    Ok(key
        .map_err(|error| Error::new(Reason::AssetNotFound, error.to_string()))?
        .canonical())
}

/// Maps the planner's errors; a workspace without a deployment has no assets.
pub(super) fn asset_not_found(status: Status) -> Status {
    match servo_mesh::error::reason_of(&status) {
        Some(Reason::SelectionInvalid | Reason::DeploymentNotFound) => {
            Error::new(Reason::AssetNotFound, status.message()).into()
        }
        _ => status,
    }
}

/// Reads a page of partition keys with their staleness. A key that the filter names is looked up
/// alone.
async fn expand(
    scheduler: &Scheduler,
    request: &pb::ListPartitionsRequest,
    asset: &str,
    filter: &Filter<pb::Partition>,
    size: usize,
    page_token: String,
) -> Result<mesh_pb::ExpandPartitionsResponse, Status> {
    let partitions = match filter.exact("partition_key").filter(|key| !key.is_empty()) {
        Some(key) => pb::partition_selection::Partitions::Keys(pb::PartitionKeys {
            keys: vec![key.to_owned()],
        }),
        None => pb::partition_selection::Partitions::All(true),
    };
    let expansion = mesh_pb::ExpandPartitionsRequest {
        tenant: request.tenant.clone(),
        workspace: request.workspace.clone(),
        selection: vec![asset.to_owned()],
        partitions: Some(pb::PartitionSelection {
            partitions: Some(partitions),
            only: 0,
        }),
        page_size: i32::try_from(size).unwrap_or(i32::MAX),
        page_token,
        with_staleness: true,
        ..Default::default()
    };
    let answer = scheduler.planner.clone().expand_partitions(expansion).await;
    match answer.map(tonic::Response::into_inner) {
        // The named partition may no longer exist, which is not an error of the request.
        Err(status) if is_out_of_range(&status) => Ok(mesh_pb::ExpandPartitionsResponse::default()),
        answer => answer.map_err(asset_not_found),
    }
}

fn is_out_of_range(status: &Status) -> bool {
    servo_mesh::error::reason_of(status) == Some(Reason::PartitionOutOfRange)
}
