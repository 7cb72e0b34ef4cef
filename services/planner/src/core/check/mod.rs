//! Everything that can be wrong with a manifest, found in one pass and told by path.

mod assets;
mod graph;
mod links;
mod partitionings;
mod rest;
mod values;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use servo_model::AssetKey;
use servo_model::limits::ASSETS_PER_MANIFEST_MAX;
use servo_model::mapping::Mapping;
use servo_model::partitioning::Partitioning;
use servo_proto::v1::{ErrorReason as Reason, Manifest};

use crate::core::nearest::did_you_mean;
use crate::core::refusal::Refusal;

/// The only format there is so far.
const FORMAT: u32 = 1;
const OFFERS_MAX: usize = 16;

/// What a manifest's assets mean, in the manifest's order.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) keys: Vec<AssetKey>,
    pub(crate) partitionings: Vec<Option<Partitioning>>,
    pub(crate) links: Vec<Vec<Link>>,
    /// The asset whose task makes each one: mostly itself.
    pub(crate) makers: Vec<u32>,
}

/// One dependency.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) upstream: u32,
    /// `None` when the upstream is one undivided piece.
    pub(crate) mapping: Option<Mapping>,
    pub(crate) parameter: String,
    pub(crate) optional: bool,
    pub(crate) mapped: bool,
}

/// Reads a manifest, or tells all of its faults.
pub(crate) fn check(manifest: &Manifest) -> Result<Checked, Refusal> {
    let mut faults = Faults::default();
    if manifest.format != FORMAT {
        faults.add(
            "format",
            format!("is {}; the only format is {FORMAT}", manifest.format),
        );
    }
    let count = manifest.assets.len();
    if count > ASSETS_PER_MANIFEST_MAX {
        let sentence = format!(
            "has {count} assets, more than the {ASSETS_PER_MANIFEST_MAX} of one manifest; split it"
        );
        faults.add("assets", sentence);
        return Err(faults.into_refusal());
    }
    let names = assets::check(manifest, &mut faults);
    let partitionings: Vec<Option<Partitioning>> = partitionings::check(manifest, &mut faults);
    let (links, makers) = links::check(manifest, &names, &partitionings, &mut faults);
    rest::check(manifest, &names, &mut faults);
    graph::check(manifest, &names, &mut faults);
    if !faults.is_empty() {
        return Err(faults.into_refusal());
    }
    let keys = manifest
        .assets
        .iter()
        .map(|asset| AssetKey::parse_canonical(&asset.key));
    let keys: Result<Vec<AssetKey>, _> = keys.collect();
    let keys = keys.map_err(|error| Refusal::new(Reason::ManifestInvalid, error.to_string()))?;
    Ok(Checked {
        keys,
        partitionings,
        links,
        makers,
    })
}

/// Where each asset stands in the manifest, by its key as written.
type Names<'a> = HashMap<&'a str, usize>;

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    found: Vec<(String, String)>,
    cycles: usize,
    offers: usize,
}

impl Faults {
    pub(crate) fn add(&mut self, path: impl Into<String>, sentence: impl Into<String>) {
        self.found.push((path.into(), sentence.into()));
    }

    /// What an unknown key may have meant. Comparing with every key is dear, so only the first ones are helped.
    fn offer(&mut self, key: &str, names: &Names<'_>) -> String {
        self.offers += 1;
        match self.offers <= OFFERS_MAX {
            true => did_you_mean(key, names.keys().copied()),
            false => String::new(),
        }
    }

    fn add_cycle(&mut self, path: String, sentence: String) {
        self.cycles += 1;
        self.add(path, sentence);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// A manifest whose only faults are circles is refused with the reason of its own.
    pub(crate) fn into_refusal(self) -> Refusal {
        let reason = match self.cycles == self.found.len() {
            true => Reason::CycleDetected,
            false => Reason::ManifestInvalid,
        };
        let (path, sentence) = &self.found[0];
        let more = match self.found.len() {
            1 => String::new(),
            count => format!(
                " (and {} more faults; validate_only with list_faults tells all)",
                count - 1
            ),
        };
        Refusal {
            reason,
            message: format!("{path}: {sentence}{more}"),
            violations: self.found,
        }
    }
}
