//! A deployment as a graph in memory: parsed once, asked often, never changed.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use servo_model::graph::Graph;
use servo_model::partitioning::{Partitioning, Values};
use servo_model::selection::{Assets, Selection, SelectionError};
use servo_model::{AssetKey, Digest};
use servo_proto::v1::{ErrorReason as Reason, Manifest, PlannedAsset};

use crate::core::check::{Link, check};
use crate::core::nearest::did_you_mean;
use crate::core::refusal::Refusal;
use crate::core::{canonical, settings};

/// Assets are numbered by the order of their keys, which is also the manifest's.
#[derive(Debug)]
pub(crate) struct Deployed {
    pub(crate) digest: Digest,
    /// In its normal order.
    pub(crate) manifest: Manifest,
    pub(crate) keys: Vec<AssetKey>,
    pub(crate) partitionings: Vec<Option<Partitioning>>,
    pub(crate) links: Vec<Vec<Link>>,
    /// The asset whose task makes each one.
    pub(crate) makers: Vec<u32>,
    /// The assets that each task makes, itself first; empty for those without a task.
    pub(crate) members: Vec<Vec<u32>>,
    /// Those with tasks, each behind everything it reads.
    pub(crate) order: Vec<u32>,
    pub(crate) upstream: Vec<Vec<u32>>,
    pub(crate) downstream: Vec<Vec<u32>>,
    /// What a plan says about each asset with a task, and the digest of that.
    pub(crate) planned: Vec<Option<(PlannedAsset, Digest)>>,
    /// The dynamic sets that its partitions come from.
    pub(crate) sets: BTreeSet<String>,
    tags: Vec<BTreeMap<String, String>>,
}

impl Deployed {
    /// Checks a manifest as it was given, so that faults are told by the caller's own order, then puts it in order.
    pub(crate) fn new(mut manifest: Manifest) -> Result<Deployed, Refusal> {
        check(&manifest)?;
        canonical::normalise(&mut manifest);
        Deployed::from_normal(manifest)
    }

    /// Reads a manifest that is in its normal order.
    pub(crate) fn from_normal(mut manifest: Manifest) -> Result<Deployed, Refusal> {
        let checked = check(&manifest)?;
        let digest = canonical::manifest_digest(&mut manifest).map_err(no_canonical_form)?;
        let members = members(&manifest, &checked.makers);
        let upstream = upstream(&checked.links, &checked.makers);
        let planned = planned(&manifest, &members)?;
        let mut deployed = Deployed {
            digest,
            downstream: turned(&upstream),
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
        deployed.order = deployed.tasks_in_order()?;
        Ok(deployed)
    }

    /// The assets that the expressions in `field` mean.
    pub(crate) fn select(&self, field: &str, expressions: &[String]) -> Result<Vec<u32>, Refusal> {
        let told = |error: SelectionError| Refusal::of_selection(field, &error, self);
        let assets = Assets {
            keys: &self.keys,
            tags: &self.tags,
            upstream: &self.upstream,
            downstream: &self.downstream,
        };
        Selection::parse(expressions)
            .map_err(told)?
            .of(&assets)
            .map_err(told)
    }

    pub(crate) fn find(&self, key: &AssetKey) -> Option<u32> {
        let at = self.keys.binary_search(key).ok()?;
        u32::try_from(at).ok()
    }

    /// The key as it is written in messages.
    pub(crate) fn name(&self, asset: u32) -> &str {
        &self.manifest.assets[asset as usize].key
    }

    pub(crate) fn partitioning(&self, asset: u32) -> Option<&Partitioning> {
        self.partitionings[asset as usize].as_ref()
    }

    pub(crate) fn is_source(&self, asset: u32) -> bool {
        self.manifest.assets[asset as usize].source
    }

    /// Everything that the task of this asset reads.
    pub(crate) fn task_links(&self, maker: u32) -> impl Iterator<Item = &Link> {
        self.members[maker as usize]
            .iter()
            .flat_map(|member| &self.links[*member as usize])
    }

    pub(crate) fn maker(&self, asset: u32) -> u32 {
        self.makers[asset as usize]
    }

    /// The version of the code that makes it; empty for what has no task.
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

    /// About what it takes in memory: its texts are kept up to three times, and each asset and link has its frame.
    pub(crate) fn weight(&self) -> usize {
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
        let graph = Graph::new(tasks.map(|maker| (maker, upstream(maker))));
        let order = graph.and_then(|graph| {
            let order = graph.order()?;
            Ok(order
                .into_iter()
                .map(|node| graph.keys()[node as usize])
                .collect())
        });
        order.map_err(|error| Refusal::new(Reason::CycleDetected, error.to_string()))
    }
}

fn no_canonical_form(error: servo_model::json::JsonError) -> Refusal {
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
        match asset == *maker {
            true => list.insert(0, asset),
            false => list.push(asset),
        }
    }
    members
}

/// What each asset reads. One that is made by another's task reads what that task reads, unless it says more.
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

fn turned(upstream: &[Vec<u32>]) -> Vec<Vec<u32>> {
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
        let digest = canonical::digest(&planned, "PlannedAsset").map_err(no_canonical_form)?;
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
