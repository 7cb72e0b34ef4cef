//! Explains why partitions are stale, for a page of them.

use std::collections::BTreeSet;

use servo_mesh::Error;
use servo_model::PartitionKey;
use servo_model::partitioning::Moment;
use servo_proto::mesh::v1::PartitionStaleness;
use servo_store::TenantTx;

use super::errors::store_error;
use crate::core::deployment_graph::DeploymentGraph;
use crate::core::freshness::{self, PartitionRef};
use crate::core::plan::inputs_of_partitions;
use crate::core::refusal::Refusal;
use crate::store::{Scope, statuses};

/// A partition and everything that decides whether it is stale.
#[derive(Debug)]
pub(crate) struct StalenessInputs {
    own: PartitionRef,
    read: Vec<PartitionRef>,
    code_version: String,
}

pub(crate) fn staleness_inputs(
    graph: &DeploymentGraph,
    asset: u32,
    keys: &[String],
    moment: &Moment,
) -> Result<Vec<StalenessInputs>, Refusal> {
    // The keys were built by this process, so only the empty key of an unpartitioned asset fails to
    // parse.
    let partitions: Vec<Option<PartitionKey>> = keys.iter().map(|key| key.parse().ok()).collect();
    let read = inputs_of_partitions(graph, asset, &partitions, moment)?;
    let (name, code) = (graph.name(asset), graph.code_version(asset));
    let inputs = |(key, read): (&String, Vec<PartitionRef>)| StalenessInputs {
        own: (name.to_owned(), key.clone()),
        read,
        code_version: code.to_owned(),
    };
    Ok(keys.iter().zip(read).map(inputs).collect())
}

/// Returns the staleness of each partition with one statement for all; none for an empty list.
pub(crate) async fn staleness(
    tx: &mut TenantTx,
    scope: &Scope,
    all: &[StalenessInputs],
) -> Result<Vec<PartitionStaleness>, Error> {
    let all_partitions = all
        .iter()
        .flat_map(|inputs| inputs.read.iter().chain([&inputs.own]));
    let distinct: BTreeSet<PartitionRef> = all_partitions.cloned().collect();
    let distinct: Vec<PartitionRef> = distinct.into_iter().collect();
    let statuses_found = statuses::of_partitions(tx, scope, &distinct)
        .await
        .map_err(store_error)?;
    let explain = |inputs: &StalenessInputs| {
        freshness::staleness(
            &statuses_found,
            &inputs.own,
            &inputs.read,
            &inputs.code_version,
        )
    };
    Ok(all.iter().map(explain).collect())
}
