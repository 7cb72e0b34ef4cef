//! Selection of assets: `ns/a`, `+ns/a`, `ns/a+`, `2+ns/a`, `ns/a+1`, `tag:x`, `tag:k=v`, `ns.*`,
//! `*`.
//!
//! Several expressions select their union; `-` before an expression excludes its assets, at any
//! position.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::asset::{AssetKey, is_name};
use crate::text::excerpt;

/// No limit on the distance.
const UNLIMITED_STEPS: u32 = u32::MAX;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    excludes: bool,
    /// Steps to follow upstream and downstream from the assets that `base` selects.
    upstream: u32,
    downstream: u32,
    base: Base,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Base {
    Asset(AssetKey),
    Tag { key: String, value: Option<String> },
    Namespace(String),
    All,
}

/// The graph of assets as selections see it. Assets are numbered by the order of their keys.
#[derive(Debug, Clone, Copy)]
pub struct Assets<'a> {
    pub keys: &'a [AssetKey],
    pub tags: &'a [BTreeMap<String, String>],
    pub upstream: &'a [Vec<u32>],
    pub downstream: &'a [Vec<u32>],
}

/// The fault of the expression at `index`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct SelectionError {
    pub index: usize,
    pub fault: SelectionFault,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionFault {
    #[error(
        "`{0}` is not a selection: write ns/name, tag:x or ns.*, with + or n+ around it for neighbours and - before it to leave it out"
    )]
    Shape(String),
    #[error("the deployment has no asset `{}`", .0.canonical())]
    UnknownAsset(AssetKey),
    #[error("only excludes assets; add what to select, such as `*`")]
    OnlyExclusions,
}

impl Selection {
    pub fn parse<T: AsRef<str>>(expressions: &[T]) -> Result<Selection, SelectionError> {
        let term = |(index, text): (usize, &T)| {
            text.as_ref()
                .parse()
                .map_err(|fault| SelectionError { index, fault })
        };
        let terms: Vec<Term> = expressions
            .iter()
            .enumerate()
            .map(term)
            .collect::<Result<_, _>>()?;
        if !terms.is_empty() && terms.iter().all(|term| term.excludes) {
            return Err(SelectionError {
                index: 0,
                fault: SelectionFault::OnlyExclusions,
            });
        }
        Ok(Selection { terms })
    }

    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The assets that are selected by key, each with the index of its expression.
    pub fn named(&self) -> impl Iterator<Item = (usize, &AssetKey)> {
        self.terms
            .iter()
            .enumerate()
            .filter_map(|(index, term)| match &term.base {
                Base::Asset(key) => Some((index, key)),
                Base::Tag { .. } | Base::Namespace(_) | Base::All => None,
            })
    }

    /// The numbers of the selected assets, ascending. An asset that is named must exist, even if it
    /// is excluded.
    pub fn of(&self, assets: &Assets<'_>) -> Result<Vec<u32>, SelectionError> {
        let mut chosen = vec![false; assets.keys.len()];
        // Applies exclusions last, so that the order of the expressions does not matter.
        for excludes in [false, true] {
            for (index, term) in self
                .terms
                .iter()
                .enumerate()
                .filter(|(_, term)| term.excludes == excludes)
            {
                let found = term
                    .of(assets)
                    .map_err(|fault| SelectionError { index, fault })?;
                chosen
                    .iter_mut()
                    .zip(found)
                    .filter(|(_, found)| *found)
                    .for_each(|(flag, _)| *flag = !excludes);
            }
        }
        Ok((0..)
            .zip(chosen)
            .filter(|(_, flag)| *flag)
            .map(|(number, _)| number)
            .collect())
    }
}

impl Term {
    fn of(&self, assets: &Assets<'_>) -> Result<Vec<bool>, SelectionFault> {
        let base = self.base.of(assets)?;
        let mut found = within_steps(&base, assets.upstream, self.upstream);
        let below = within_steps(&base, assets.downstream, self.downstream);
        found
            .iter_mut()
            .zip(below)
            .for_each(|(flag, below)| *flag |= below);
        Ok(found)
    }
}

impl Base {
    fn of(&self, assets: &Assets<'_>) -> Result<Vec<bool>, SelectionFault> {
        match self {
            Base::All => Ok(vec![true; assets.keys.len()]),
            Base::Namespace(namespace) => Ok(assets
                .keys
                .iter()
                .map(|key| key.namespace() == namespace)
                .collect()),
            Base::Tag { key, value } => {
                let fits = |found: &String| value.as_ref().is_none_or(|wanted| wanted == found);
                Ok(assets
                    .tags
                    .iter()
                    .map(|tags| tags.get(key).is_some_and(fits))
                    .collect())
            }
            Base::Asset(key) => {
                let at = assets.keys.binary_search(key);
                let at = at.map_err(|_| SelectionFault::UnknownAsset(key.clone()))?;
                Ok((0..assets.keys.len()).map(|number| number == at).collect())
            }
        }
    }
}

/// The nodes within `steps` steps, including the start. Works level by level, so that deep graphs
/// do not need a deep stack.
fn within_steps(base: &[bool], neighbours: &[Vec<u32>], steps: u32) -> Vec<bool> {
    let mut found = base.to_vec();
    let mut edge: Vec<usize> = (0..base.len()).filter(|at| base[*at]).collect();
    let mut left = steps;
    while left > 0 && !edge.is_empty() {
        let mut next = Vec::new();
        for &neighbour in edge.iter().flat_map(|at| &neighbours[*at]) {
            let neighbour = neighbour as usize;
            if !found[neighbour] {
                found[neighbour] = true;
                next.push(neighbour);
            }
        }
        edge = next;
        left -= 1;
    }
    found
}

impl FromStr for Term {
    type Err = SelectionFault;

    fn from_str(text: &str) -> Result<Term, SelectionFault> {
        parse_term(text).ok_or_else(|| SelectionFault::Shape(excerpt(text)))
    }
}

fn parse_term(text: &str) -> Option<Term> {
    let (excludes, text) = text
        .strip_prefix('-')
        .map_or((false, text), |rest| (true, rest));
    // A tag's value may contain any character, so nothing is parsed after it.
    if let Some(at) = text.find("tag:") {
        let upstream = text[..at]
            .strip_suffix('+')
            .map_or(at.eq(&0).then_some(0), steps)?;
        let (rest, downstream) = match text[at + 4..].strip_suffix('+') {
            Some(rest) => (rest, UNLIMITED_STEPS),
            None => (&text[at + 4..], 0),
        };
        return Some(Term {
            excludes,
            upstream,
            downstream,
            base: tag(rest)?,
        });
    }
    let (upstream, rest) = match text.split_once('+') {
        Some((count, rest)) if count.bytes().all(|byte| byte.is_ascii_digit()) => {
            (steps(count)?, rest)
        }
        _ => (0, text),
    };
    let (base, downstream) = match rest.split_once('+') {
        Some((base, count)) => (base, steps(count)?),
        None => (rest, 0),
    };
    Some(Term {
        excludes,
        upstream,
        downstream,
        base: plain(base)?,
    })
}

/// An empty count means no limit.
fn steps(count: &str) -> Option<u32> {
    if count.is_empty() {
        Some(UNLIMITED_STEPS)
    } else {
        count
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| count.parse().ok())?
    }
}

fn tag(text: &str) -> Option<Base> {
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (text, None),
    };
    (!key.is_empty()).then(|| Base::Tag {
        key: key.to_owned(),
        value,
    })
}

fn plain(text: &str) -> Option<Base> {
    if text == "*" {
        return Some(Base::All);
    }
    if let Some(namespace) = text.strip_suffix(".*").or_else(|| text.strip_suffix("/*")) {
        return is_name(namespace).then(|| Base::Namespace(namespace.to_owned()));
    }
    let key = AssetKey::parse_canonical(text).or_else(|_| AssetKey::parse_display(text));
    key.ok().map(Base::Asset)
}
