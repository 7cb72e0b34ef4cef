//! Checks the dependencies between assets, and which assets one task makes together.

use std::collections::HashSet;

use servo_model::mapping::{DeclaredRule, Mapping, MappingRule};
use servo_model::partitioning::Partitioning;
use servo_proto::v1::dimension_mapping::Rule;
use servo_proto::v1::{Dependency, DimensionMapping, Manifest};

use super::{Faults, Link, Names, values};

const DEPENDENCIES_MAX: usize = 10_000;

/// Returns the links of every asset, and the asset whose task makes it.
pub(super) fn check(
    manifest: &Manifest,
    names: &Names<'_>,
    partitionings: &[Option<Partitioning>],
    faults: &mut Faults,
) -> (Vec<Vec<Link>>, Vec<u32>) {
    let mut reader = Reader {
        manifest,
        names,
        partitionings,
        faults,
    };
    let makers = (0..manifest.assets.len())
        .map(|index| reader.maker(index))
        .collect();
    let links = (0..manifest.assets.len())
        .map(|index| reader.links(index))
        .collect();
    (links, makers)
}

struct Reader<'a> {
    manifest: &'a Manifest,
    names: &'a Names<'a>,
    partitionings: &'a [Option<Partitioning>],
    faults: &'a mut Faults,
}

impl Reader<'_> {
    fn maker(&mut self, index: usize) -> u32 {
        let asset = &self.manifest.assets[index];
        let path = format!("assets[{index}].made_by");
        let itself = number(index);
        if asset.made_by.is_empty() {
            return itself;
        }
        let Some(maker) = self.find(&path, &asset.made_by) else {
            return itself;
        };
        let made_by = &self.manifest.assets[maker];
        if asset.source {
            self.faults
                .add(path, "a source is made elsewhere; leave this empty");
        } else if made_by.source || !made_by.made_by.is_empty() {
            self.faults.add(
                path,
                format!(
                    "`{}` has no task of its own; name the asset that has",
                    asset.made_by
                ),
            );
        } else if !asset.checks.is_empty() {
            self.faults.add(
                format!("assets[{index}].checks"),
                format!("run in the task of `{}`; define them there", asset.made_by),
            );
        } else if self.partitionings[maker] != self.partitionings[index] {
            self.faults.add(
                path,
                format!(
                    "`{}` is partitioned differently; give both the same partitions",
                    asset.made_by
                ),
            );
        }
        number(maker)
    }

    fn links(&mut self, index: usize) -> Vec<Link> {
        let asset = &self.manifest.assets[index];
        let at = format!("assets[{index}].dependencies");
        if asset.source && !asset.dependencies.is_empty() {
            self.faults.add(
                &at,
                "a source is made elsewhere; leave its dependencies out",
            );
        }
        if asset.dependencies.len() > DEPENDENCIES_MAX {
            self.faults.add(
                &at,
                format!("has more than {DEPENDENCIES_MAX} entries; group some of them"),
            );
            return Vec::new();
        }
        if asset
            .dependencies
            .iter()
            .filter(|dependency| dependency.mapped)
            .count()
            > 1
        {
            self.faults.add(
                &at,
                "more than one is mapped; an asset runs over the items of one upstream",
            );
        }
        let (mut parameters, mut upstreams) = (HashSet::new(), HashSet::new());
        let mut links = Vec::with_capacity(asset.dependencies.len());
        for (position, dependency) in asset.dependencies.iter().enumerate() {
            let path = format!("{at}[{position}]");
            if !upstreams.insert((&dependency.upstream, &dependency.parameter)) {
                self.faults.add(
                    &path,
                    format!("`{}` appears twice; keep one", dependency.upstream),
                );
            } else if !dependency.parameter.is_empty() && !parameters.insert(&dependency.parameter)
            {
                self.faults.add(
                    format!("{path}.parameter"),
                    "is the name of another input too; keep one",
                );
            }
            links.extend(self.link(index, &path, dependency));
        }
        links
    }

    fn link(&mut self, index: usize, path: &str, dependency: &Dependency) -> Option<Link> {
        check_parameter(
            self.faults,
            &format!("{path}.parameter"),
            &dependency.parameter,
        );
        let upstream = self.find(&format!("{path}.upstream"), &dependency.upstream)?;
        if dependency.mapped && !self.manifest.assets[upstream].yields_items {
            self.faults.add(
                format!("{path}.mapped"),
                format!("`{}` yields no items", dependency.upstream),
            );
        }
        Some(Link {
            upstream: number(upstream),
            mapping: self.mapping(index, upstream, path, dependency),
            parameter: dependency.parameter.clone(),
            optional: dependency.optional,
            mapped: dependency.mapped,
        })
    }

    fn mapping(
        &mut self,
        index: usize,
        upstream: usize,
        path: &str,
        dependency: &Dependency,
    ) -> Option<Mapping> {
        let declared = dependency
            .mapping
            .as_ref()
            .map_or(&[][..], |mapping| &mapping.dimensions);
        let path = format!("{path}.mapping");
        let Some(up) = &self.partitionings[upstream] else {
            // An invalid partitioning has already been reported.
            let undivided = self.manifest.assets[upstream].partitions.is_none();
            if undivided && !declared.is_empty() {
                self.faults.add(
                    path,
                    format!(
                        "`{}` is one undivided piece; drop the mapping",
                        dependency.upstream
                    ),
                );
            }
            return None;
        };
        let mut rules = Vec::with_capacity(declared.len());
        for (position, rule) in declared.iter().enumerate() {
            match mapping_rule(rule) {
                Some(rule) => rules.push(rule),
                None => self.faults.add(
                    format!("{path}.dimensions[{position}]"),
                    "has no rule; give it one",
                ),
            }
        }
        let report = |faults: Vec<servo_model::mapping::MappingFault>| {
            for fault in faults {
                let path = format!("{path}.dimensions[{}].{}", fault.index, fault.field);
                self.faults.add(path, fault.sentence);
            }
        };
        Mapping::new(up, self.partitionings[index].as_ref(), &rules)
            .map_err(report)
            .ok()
    }

    fn find(&mut self, path: &str, key: &str) -> Option<usize> {
        let found = self.names.get(key).copied();
        if found.is_none() {
            let suggestion = self.faults.suggest(key, self.names);
            let shown = &key[..key.floor_char_boundary(128)];
            self.faults.add(
                path,
                format!("there is no asset `{shown}` in the manifest{suggestion}"),
            );
        }
        found
    }
}

fn check_parameter(faults: &mut Faults, path: &str, text: &str) {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_name = starts && plain && text.len() <= values::NAME_BYTES_MAX;
    if !text.is_empty() && !is_name {
        faults.add(
            path,
            "is not a parameter name: write letters, digits and `_`, not beginning with a digit",
        );
    }
}

/// Returns `None` for a rule that is `false`, because that is not a rule.
fn mapping_rule(declared: &DimensionMapping) -> Option<DeclaredRule> {
    let rule = match declared.rule.as_ref()? {
        Rule::Identity(true) => MappingRule::Identity,
        Rule::All(true) => MappingRule::All,
        Rule::Identity(false) | Rule::All(false) => return None,
        Rule::Window(window) => MappingRule::Window {
            start: window.start_offset,
            end: window.end_offset,
        },
        Rule::Latest(count) => MappingRule::Latest(*count),
        Rule::Table(table) => {
            let entry = |entry: &servo_proto::v1::ValueTableEntry| {
                (entry.downstream.clone(), entry.upstream.clone())
            };
            MappingRule::Table(table.entries.iter().map(entry).collect())
        }
    };
    Some(DeclaredRule {
        upstream: declared.upstream.clone(),
        downstream: declared.downstream.clone(),
        rule,
    })
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("a manifest's assets are few")
}
