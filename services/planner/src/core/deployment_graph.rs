//! A deployment as an immutable in-memory graph, parsed once and read often.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use servo_model::graph::Graph;
use servo_model::partitioning::{Partitioning, Values};
use servo_model::selection::{Assets, Selection, SelectionError};
use servo_model::{AssetKey, Digest};
use servo_proto::v1::{ErrorReason as Reason, Manifest, PlannedAsset};

use crate::core::check::{Link, check};
use crate::core::refusal::Refusal;
use crate::core::suggestions::did_you_mean;
use crate::core::{canonical, settings};

/// Assets are numbered in the order of their keys, which is also the order of the normalised
/// manifest.
#[derive(Debug)]
pub(crate) struct DeploymentGraph {
    pub(crate) digest: Digest,
    /// Normalised, see [`canonical::normalise`].
    pub(crate) manifest: Manifest,
    pub(crate) keys: Vec<AssetKey>,
    pub(crate) partitionings: Vec<Option<Partitioning>>,
    pub(crate) links: Vec<Vec<Link>>,
    /// The asset whose task makes each asset.
    pub(crate) makers: Vec<u32>,
    /// The assets that each task makes, its own asset first. Empty for assets without a task.
    pub(crate) members: Vec<Vec<u32>>,
    /// The assets with tasks in topological order.
    pub(crate) order: Vec<u32>,
    pub(crate) upstream: Vec<Vec<u32>>,
    pub(crate) downstream: Vec<Vec<u32>>,
    /// The plan settings of each asset with a task, and their digest.
    pub(crate) planned: Vec<Option<(PlannedAsset, Digest)>>,
    /// The dynamic sets that its partitionings use.
    pub(crate) sets: BTreeSet<String>,
    tags: Vec<BTreeMap<String, String>>,
}

impl DeploymentGraph {
    /// Checks and normalises a manifest. It is checked before it is normalised, so that faults
    /// refer to the caller's own order.
    pub(crate) fn new(mut manifest: Manifest) -> Result<DeploymentGraph, Refusal> {
        check(&manifest)?;
        canonical::normalise(&mut manifest);
        DeploymentGraph::from_normal(manifest)
    }

    /// Builds the graph of a manifest that is already normalised.
    pub(crate) fn from_normal(mut manifest: Manifest) -> Result<DeploymentGraph, Refusal> {
        let checked = check(&manifest)?;
        let digest = canonical::manifest_digest(&mut manifest).map_err(canonical_error)?;
        let members = members(&manifest, &checked.makers);
        let upstream = upstream(&checked.links, &checked.makers);
        let planned = planned(&manifest, &members)?;
        let mut graph = DeploymentGraph {
            digest,
            downstream: reversed(&upstream),
            tags: manifest
                .assets
                .iter()
                .map(|asset| asset.tags.clone())
                .collect(),
            sets: checked
                .partitionings
                .iter()
                .flatten()
                .flat_map(sets_of)
                .collect(),
            keys: checked.keys,
            partitionings: checked.partitionings,
            links: checked.links,
            makers: checked.makers,
            order: Vec::new(),
            members,
            upstream,
            planned,
            manifest,
        };
        graph.order = graph.tasks_in_order()?;
        Ok(graph)
    }

    /// Returns the assets that the expressions in `field` select.
    pub(crate) fn select(&self, field: &str, expressions: &[String]) -> Result<Vec<u32>, Refusal> {
        let refusal = |error: SelectionError| Refusal::of_selection(field, &error, self);
        let assets = Assets {
            keys: &self.keys,
            tags: &self.tags,
            upstream: &self.upstream,
            downstream: &self.downstream,
        };
        Selection::parse(expressions)
            .map_err(refusal)?
            .of(&assets)
            .map_err(refusal)
    }

    pub(crate) fn find(&self, key: &AssetKey) -> Option<u32> {
        let at = self.keys.binary_search(key).ok()?;
        u32::try_from(at).ok()
    }

    /// Returns the asset key as it is written in messages.
    pub(crate) fn name(&self, asset: u32) -> &str {
        &self.manifest.assets[asset as usize].key
    }

    pub(crate) fn partitioning(&self, asset: u32) -> Option<&Partitioning> {
        self.partitionings[asset as usize].as_ref()
    }

    pub(crate) fn is_source(&self, asset: u32) -> bool {
        self.manifest.assets[asset as usize].source
    }

    /// Returns the links of every asset that this task makes.
    pub(crate) fn task_links(&self, maker: u32) -> impl Iterator<Item = &Link> {
        self.members[maker as usize]
            .iter()
            .flat_map(|member| &self.links[*member as usize])
    }

    pub(crate) fn maker(&self, asset: u32) -> u32 {
        self.makers[asset as usize]
    }

    /// Returns the version of the code that makes the asset; empty for an asset without a task.
    pub(crate) fn code_version(&self, asset: u32) -> &str {
        let planned = self.planned[self.maker(asset) as usize].as_ref();
        planned.map_or("", |(planned, _)| planned.code_version.as_str())
    }

    pub(crate) fn did_you_mean(&self, key: &str) -> String {
        did_you_mean(
            key,
            self.manifest.assets.iter().map(|asset| asset.key.as_str()),
        )
    }

    /// Estimates the memory use in bytes: texts are kept up to three times, and each asset and link
    /// has a fixed overhead.
    pub(crate) fn memory_bytes(&self) -> usize {
        const ASSET_BYTES: usize = 2048;
        const LINK_BYTES: usize = 384;
        let links: usize = self.links.iter().map(Vec::len).sum();
        3 * self.manifest.encoded_len() + ASSET_BYTES * self.keys.len() + LINK_BYTES * links
    }

    fn tasks_in_order(&self) -> Result<Vec<u32>, Refusal> {
        let tasks = (0..)
            .zip(&self.members)
            .filter(|(_, members)| !members.is_empty())
            .map(|(maker, _)| maker);
        let upstream = |maker: u32| {
            let makers = self.task_links(maker).map(|link| self.maker(link.upstream));
            makers.filter(|before| !self.is_source(*before)).collect()
        };
        let tasks = Graph::new(tasks.map(|maker| (maker, upstream(maker))));
        let order = tasks.and_then(|tasks| {
            let order = tasks.order()?;
            Ok(order
                .into_iter()
                .map(|node| tasks.keys()[node as usize])
                .collect())
        });
        order.map_err(|error| Refusal::new(Reason::CycleDetected, error.to_string()))
    }
}

fn canonical_error(error: servo_model::json::JsonError) -> Refusal {
    Refusal::of_field(
        Reason::ManifestInvalid,
        "manifest",
        format!("has no canonical form: {error}"),
    )
}

fn members(manifest: &Manifest, makers: &[u32]) -> Vec<Vec<u32>> {
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); makers.len()];
    let with_tasks = (0u32..)
        .zip(makers)
        .filter(|(asset, _)| !manifest.assets[*asset as usize].source);
    for (asset, maker) in with_tasks {
        let list = &mut members[*maker as usize];
        if asset == *maker {
            list.insert(0, asset)
        } else {
            list.push(asset)
        }
    }
    members
}

/// Returns the assets that each asset reads. An asset that another asset's task makes reads what
/// that task reads, unless it declares dependencies of its own.
fn upstream(links: &[Vec<Link>], makers: &[u32]) -> Vec<Vec<u32>> {
    let of = |(own, maker): (&Vec<Link>, &u32)| {
        let links = if own.is_empty() {
            &links[*maker as usize]
        } else {
            own
        };
        let distinct: BTreeSet<u32> = links.iter().map(|link| link.upstream).collect();
        distinct.into_iter().collect()
    };
    links.iter().zip(makers).map(of).collect()
}

fn reversed(upstream: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut downstream = vec![Vec::new(); upstream.len()];
    for (asset, list) in (0u32..).zip(upstream) {
        list.iter()
            .for_each(|before| downstream[*before as usize].push(asset));
    }
    downstream
}

fn planned(
    manifest: &Manifest,
    members: &[Vec<u32>],
) -> Result<Vec<Option<(PlannedAsset, Digest)>>, Refusal> {
    let of = |members: &Vec<u32>| {
        let Some((maker, also)) = members.split_first() else {
            return Ok(None);
        };
        let key = |asset: &u32| manifest.assets[*asset as usize].key.clone();
        let planned = settings::planned(
            &manifest.assets[*maker as usize],
            manifest,
            also.iter().map(key).collect(),
        );
        let digest = canonical::digest(&planned, "PlannedAsset").map_err(canonical_error)?;
        Ok(Some((planned, digest)))
    };
    members.iter().map(of).collect()
}

fn sets_of(partitioning: &Partitioning) -> impl Iterator<Item = String> {
    partitioning
        .dimensions()
        .iter()
        .filter_map(|dimension| match &dimension.values {
            Values::Dynamic { set } => Some(set.clone()),
            Values::Time(_) | Values::Fixed(_) => None,
        })
}
