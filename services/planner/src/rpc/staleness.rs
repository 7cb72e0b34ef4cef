//! Why partitions are stale, for a page of them.

use std::collections::BTreeSet;

use servo_mesh::Error;
use servo_model::PartitionKey;
use servo_model::partitioning::Moment;
use servo_proto::v1::PartitionStaleness;
use servo_store::TenantTx;

use super::context::stored;
use crate::core::deployed::Deployed;
use crate::core::freshness::{self, Place};
use crate::core::plan::read_by;
use crate::core::refusal::Refusal;
use crate::store::{Scope, statuses};

/// A partition with everything that it is judged by.
#[derive(Debug)]
pub(super) struct Judged {
    own: Place,
    read: Vec<Place>,
    code_version: String,
}

pub(super) fn judged(
    deployed: &Deployed,
    asset: u32,
    keys: &[String],
    moment: &Moment,
) -> Result<Vec<Judged>, Refusal> {
    // What was just written is read back; a key that cannot be is an asset in one piece.
    let partitions: Vec<Option<PartitionKey>> = keys.iter().map(|key| key.parse().ok()).collect();
    let read = read_by(deployed, asset, &partitions, moment)?;
    let (name, code) = (deployed.name(asset), deployed.code_version(asset));
    let judged = |(key, read): (&String, Vec<Place>)| Judged {
        own: (name.to_owned(), key.clone()),
        read,
        code_version: code.to_owned(),
    };
    Ok(keys.iter().zip(read).map(judged).collect())
}

/// One for each, by one statement for all; none when nothing was asked for.
pub(super) async fn staleness(
    tx: &mut TenantTx,
    scope: &Scope,
    all: &[Judged],
) -> Result<Vec<PartitionStaleness>, Error> {
    let places = all
        .iter()
        .flat_map(|judged| judged.read.iter().chain([&judged.own]));
    let distinct: BTreeSet<Place> = places.cloned().collect();
    let distinct: Vec<Place> = distinct.into_iter().collect();
    let known = statuses::of_one(tx, scope, &distinct)
        .await
        .map_err(stored)?;
    let judge = |judged: &Judged| {
        freshness::staleness(&known, &judged.own, &judged.read, &judged.code_version)
    };
    Ok(all.iter().map(judge).collect())
}
