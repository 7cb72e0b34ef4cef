//! What a retry repeats.

use super::world::{mapped_plan, plan};
use crate::core::{RetryScope, repeated};

/// a -> b -> c, a -> d, and e by itself.
fn check(succeeded: &[u32], scope: RetryScope, expected: &[u32]) {
    let plan = plan(&[&[], &[0], &[1], &[0], &[]]);
    let again = repeated(&plan, |ordinal| succeeded.contains(&ordinal), &scope);
    assert_eq!(
        again,
        expected.iter().copied().collect(),
        "{succeeded:?} {scope:?}"
    );
}

#[test]
fn what_did_not_succeed_is_repeated() {
    check(&[0, 3, 4], RetryScope::Failed, &[1, 2]);
    check(&[0, 1, 2, 3, 4], RetryScope::Failed, &[]);
    check(&[], RetryScope::Failed, &[0, 1, 2, 3, 4]);
}

#[test]
fn named_tasks_take_along_what_depends_on_them_and_what_they_still_need() {
    check(&[0, 1, 2, 3, 4], RetryScope::From([1].into()), &[1, 2]);
    check(
        &[0, 1, 2, 3, 4],
        RetryScope::From([0].into()),
        &[0, 1, 2, 3],
    );
    check(&[0, 3, 4], RetryScope::From([2].into()), &[1, 2]);
    check(&[0, 3], RetryScope::From([3].into()), &[3]);
}

#[test]
fn what_is_mapped_takes_its_items_along() {
    let plan = mapped_plan(&[&[], &[0], &[0]], &[(1, 0)]);
    assert_eq!(
        repeated(&plan, |ordinal| ordinal != 1, &RetryScope::Failed),
        [0, 1, 2].into()
    );
}
