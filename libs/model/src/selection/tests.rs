use proptest::prelude::*;

use super::*;

/// a -> b -> c -> d, x/e unconnected; b has the tag team=core, c the tag hot.
struct World {
    keys: Vec<AssetKey>,
    tags: Vec<BTreeMap<String, String>>,
    upstream: Vec<Vec<u32>>,
    downstream: Vec<Vec<u32>>,
}

impl World {
    fn new() -> World {
        let keys = [("n", "a"), ("n", "b"), ("n", "c"), ("n", "d"), ("x", "e")];
        let tag = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        World {
            keys: keys
                .iter()
                .map(|(namespace, name)| AssetKey::new(namespace, name).unwrap())
                .collect(),
            tags: vec![
                BTreeMap::new(),
                tag("team", "core"),
                tag("hot", ""),
                BTreeMap::new(),
                BTreeMap::new(),
            ],
            upstream: vec![vec![], vec![0], vec![1], vec![2], vec![]],
            downstream: vec![vec![1], vec![2], vec![3], vec![], vec![]],
        }
    }

    fn select(&self, expressions: &[&str]) -> Result<String, SelectionError> {
        let assets = Assets {
            keys: &self.keys,
            tags: &self.tags,
            upstream: &self.upstream,
            downstream: &self.downstream,
        };
        let found = Selection::parse(expressions)?.of(&assets)?;
        Ok(found
            .iter()
            .map(|number| self.keys[*number as usize].name())
            .collect())
    }
}

#[test]
fn every_kind_of_expression() {
    let check = |expressions: &[&str], expected: &str| {
        assert_eq!(
            World::new().select(expressions).as_deref(),
            Ok(expected),
            "{expressions:?}"
        );
    };
    check(&["n/b"], "b");
    check(&["n.b"], "b");
    check(&["+n/c"], "abc");
    check(&["n/c+"], "cd");
    check(&["+n/b+"], "abcd");
    check(&["1+n/c"], "bc");
    check(&["n/a+2"], "abc");
    check(&["1+n/c+1"], "bcd");
    check(&["0+n/c"], "c");
    check(&["tag:hot"], "c");
    check(&["tag:team"], "b");
    check(&["tag:team=core"], "b");
    check(&["tag:team=other"], "");
    check(&["+tag:hot"], "abc");
    check(&["1+tag:hot+"], "bcd");
    check(&["n.*"], "abcd");
    check(&["x/*"], "e");
    check(&["*"], "abcde");
    check(&["n/a", "x.e"], "ae");
    check(&["-n/b", "+n/c"], "ac");
    check(&["n.*", "-n/c+"], "ab");
    check(&[], "");
}

#[test]
fn invalid_expressions_are_reported_by_index() {
    let check = |expressions: &[&str], index: usize, part: &str| {
        let error = World::new().select(expressions).unwrap_err();
        assert_eq!(error.index, index, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    check(&["n/a", "n/z"], 1, "has no asset `n/z`");
    check(&["-n/z", "n/a"], 0, "has no asset `n/z`");
    check(&["-n/a"], 0, "only excludes assets");
    for shape in [
        "",
        "a",
        "+",
        "n/a+x",
        "x+n/a",
        "n/a++",
        "tag:",
        "N.*",
        "--n/a",
        "99999999999+n/a",
        "atag:x",
    ] {
        check(&["n/a", shape], 1, "is not a selection");
    }
}

proptest! {
    #[test]
    fn order_of_expressions_does_not_matter(
        expressions in prop::collection::vec(
            prop::sample::select(vec!["n/a", "+n/c", "tag:hot", "-n/b", "x.*", "-1+n/d", "n/b+"]), 1..6,
        ),
    ) {
        let mut turned = expressions.clone();
        turned.reverse();
        let (one, other) = (World::new().select(&expressions), World::new().select(&turned));
        prop_assert_eq!(one.ok(), other.ok());
    }
}
