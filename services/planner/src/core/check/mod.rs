//! Checks a manifest and reports all of its faults in one pass, each by path.

mod assets;
mod graph;
mod links;
mod partitionings;
mod rest;
mod unserved;
mod values;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use servo_model::AssetKey;
use servo_model::limits::ASSETS_PER_MANIFEST_MAX;
use servo_model::mapping::Mapping;
use servo_model::partitioning::Partitioning;
use servo_proto::v1::{ErrorReason as Reason, Manifest};

pub(crate) use self::unserved::warnings;
use crate::core::refusal::Refusal;
use crate::core::suggestions::did_you_mean;

/// The only manifest format so far.
const FORMAT: u32 = 1;
const SUGGESTIONS_MAX: usize = 16;

/// The parsed assets of a manifest, in the manifest's order.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) keys: Vec<AssetKey>,
    pub(crate) partitionings: Vec<Option<Partitioning>>,
    pub(crate) links: Vec<Vec<Link>>,
    /// The asset whose task makes each asset, usually the asset itself.
    pub(crate) makers: Vec<u32>,
}

/// One dependency of an asset.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) upstream: u32,
    /// `None` when the upstream is unpartitioned.
    pub(crate) mapping: Option<Mapping>,
    pub(crate) parameter: String,
    pub(crate) optional: bool,
    pub(crate) mapped: bool,
}

/// Parses a manifest, or returns all of its faults.
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

/// The index of each asset in the manifest, by its key as written.
type Names<'a> = HashMap<&'a str, usize>;

/// The faults found so far.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    found: Vec<(String, String)>,
    cycles: usize,
    suggestions: usize,
}

impl Faults {
    pub(crate) fn add(&mut self, path: impl Into<String>, sentence: impl Into<String>) {
        self.found.push((path.into(), sentence.into()));
    }

    /// Returns a suggestion for an unknown key. Only the first few unknown keys get one, because
    /// comparing with every key is expensive.
    fn suggest(&mut self, key: &str, names: &Names<'_>) -> String {
        self.suggestions += 1;
        if self.suggestions <= SUGGESTIONS_MAX {
            did_you_mean(key, names.keys().copied())
        } else {
            String::new()
        }
    }

    fn add_cycle(&mut self, path: String, sentence: String) {
        self.cycles += 1;
        self.add(path, sentence);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// A manifest whose only faults are cycles is refused with a reason of its own.
    pub(crate) fn into_refusal(self) -> Refusal {
        let reason = if self.cycles == self.found.len() {
            Reason::CycleDetected
        } else {
            Reason::ManifestInvalid
        };
        let (path, sentence) = &self.found[0];
        let more = match self.found.len() {
            1 => String::new(),
            count => format!(
                " (and {} more faults; validate_only with list_faults returns all)",
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
