//! ListPartitions: what is known of each partition of an asset. Which partitions there are, and what they are made from,
//! the planner knows.

use servo_mesh::paging::page_size;
use servo_mesh::{Error, Reason};
use servo_model::AssetKey;
use servo_proto::v1 as pb;
use tonic::Status;

use super::partition_filter::Wanted;
use super::show_partitions::{Named, show};
use super::{Scheduler, answer, live_partitions, wait};

/// How many pages are looked at for one that holds something, when a filter leaves out most.
const PAGES_LOOKED_AT_MAX: usize = 20;

pub(super) async fn list_partitions(
    scheduler: &Scheduler,
    request: pb::ListPartitionsRequest,
) -> Result<pb::ListPartitionsResponse, Status> {
    let wanted = Wanted::parse(&request.filter)?;
    let asset = asset_key(&request.namespace, &request.name)?;
    wait::for_event(scheduler, &request.wait_for_event_id).await?;
    let size = page_size(request.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
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
    let scope = (request.tenant.as_str(), request.workspace.as_str());
    let live = live_partitions::find(scheduler, scope.0, scope.1).await?;
    let mut partitions = Vec::new();
    for _ in 0..PAGES_LOOKED_AT_MAX {
        let page = named(scheduler, &request, &asset, &wanted, size, token).await?;
        token = page.next_page_token;
        let mut staleness = page.staleness.into_iter();
        let named = page.partition_keys.into_iter().map(|partition_key| Named {
            asset_key: asset.clone(),
            partition_key,
            staleness: staleness.next().unwrap_or_default(),
        });
        let shown = show(scheduler, scope, &live, named.collect()).await?;
        partitions.extend(shown.into_iter().filter(|partition| wanted.fits(partition)));
        if token.is_empty() || !partitions.is_empty() {
            break;
        }
    }
    let next = Some(token).filter(|token| !token.is_empty());
    Ok(pb::ListPartitionsResponse {
        partitions,
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

/// A key that is none names no asset.
pub(super) fn asset_key(namespace: &str, name: &str) -> Result<String, Error> {
    let key = AssetKey::new(namespace, name);
    Ok(key
        .map_err(|error| Error::new(Reason::AssetNotFound, error.to_string()))?
        .canonical())
}

/// A workspace where nothing is deployed has no asset either.
pub(super) fn asset_not_found(status: Status) -> Status {
    match servo_mesh::error::reason_of(&status) {
        Some(Reason::SelectionInvalid | Reason::DeploymentNotFound) => {
            Error::new(Reason::AssetNotFound, status.message()).into()
        }
        _ => status,
    }
}

/// A page of keys, with what makes each of them stale. A key that the filter names is looked up alone.
async fn named(
    scheduler: &Scheduler,
    request: &pb::ListPartitionsRequest,
    asset: &str,
    wanted: &Wanted,
    size: usize,
    page_token: String,
) -> Result<pb::ExpandPartitionsResponse, Status> {
    let partitions = match wanted.key().filter(|key| !key.is_empty()) {
        Some(key) => pb::partition_selection::Partitions::Keys(pb::PartitionKeys {
            keys: vec![key.to_owned()],
        }),
        None => pb::partition_selection::Partitions::All(true),
    };
    let expand = pb::ExpandPartitionsRequest {
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
    let answer = scheduler.planner.clone().expand_partitions(expand).await;
    match answer.map(tonic::Response::into_inner) {
        // It may be gone; that is no fault of the question.
        Err(status) if is_out_of_range(&status) => Ok(pb::ExpandPartitionsResponse::default()),
        answer => answer.map_err(asset_not_found),
    }
}

fn is_out_of_range(status: &Status) -> bool {
    servo_mesh::error::reason_of(status) == Some(Reason::PartitionOutOfRange)
}
