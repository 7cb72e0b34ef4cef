//! Which tasks a retry repeats.

use super::world::{mapped_plan, plan};
use crate::core::{RetryScope, repeated};

/// a -> b -> c, a -> d, and an independent e.
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
fn tasks_that_did_not_succeed_are_repeated() {
    check(&[0, 3, 4], RetryScope::Failed, &[1, 2]);
    check(&[0, 1, 2, 3, 4], RetryScope::Failed, &[]);
    check(&[], RetryScope::Failed, &[0, 1, 2, 3, 4]);
}

#[test]
fn named_tasks_include_their_downstream_and_their_failed_upstreams() {
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
fn a_mapped_task_repeats_the_task_that_provides_its_items() {
    let plan = mapped_plan(&[&[], &[0], &[0]], &[(1, 0)]);
    assert_eq!(
        repeated(&plan, |ordinal| ordinal != 1, &RetryScope::Failed),
        [0, 1, 2].into()
    );
}
