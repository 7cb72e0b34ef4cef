//! Decisions about quarantined materializations. The edges between tasks are resolved in
//! [`propagate`](super::propagate).

use servo_model::states::MaterializationState;

use super::verdict::{Refusal, Verdict};

/// A materialization whose quarantine is being resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolvable {
    pub state: MaterializationState,
    /// The number of changes, from 1.
    pub version: u64,
}

impl Resolvable {
    /// Whether it was resolved to this state before.
    fn is_resolved_as(&self, state: MaterializationState) -> bool {
        self.version > 1 && self.state == state
    }
}

/// Approves or rejects; `version` is the version afterwards.
pub fn resolve(at: &mut Resolvable, approve: bool, version: u64) -> Verdict {
    let to = if approve {
        MaterializationState::Promoted
    } else {
        MaterializationState::Rejected
    };
    if at.is_resolved_as(to) {
        return Verdict::Duplicate;
    }
    if at.state != MaterializationState::Quarantined {
        return Verdict::Refused(Refusal::MaterializationIs(at.state));
    }
    if version != at.version + 1 {
        return Verdict::Refused(Refusal::MaterializationVersion(at.version));
    }
    *at = Resolvable { state: to, version };
    Verdict::Folded
}

#[cfg(test)]
mod tests {
    use MaterializationState::{Promoted, Quarantined, Rejected};

    use super::*;

    fn check(state: MaterializationState, version: u64, approve: bool, to: u64, expected: Verdict) {
        let mut at = Resolvable { state, version };
        assert_eq!(
            resolve(&mut at, approve, to),
            expected,
            "{state} {version} {approve} {to}"
        );
    }

    #[test]
    fn a_quarantine_is_resolved_once() {
        let mut at = Resolvable {
            state: Quarantined,
            version: 1,
        };
        assert_eq!(resolve(&mut at, true, 2), Verdict::Folded);
        assert_eq!(
            at,
            Resolvable {
                state: Promoted,
                version: 2
            }
        );
        assert_eq!(resolve(&mut at, true, 2), Verdict::Duplicate);
        assert_eq!(
            resolve(&mut at, false, 3),
            Verdict::Refused(Refusal::MaterializationIs(Promoted))
        );
    }

    #[test]
    fn only_a_quarantined_version_is_resolved() {
        check(Rejected, 2, false, 3, Verdict::Duplicate);
        check(
            Rejected,
            2,
            true,
            3,
            Verdict::Refused(Refusal::MaterializationIs(Rejected)),
        );
        check(
            Quarantined,
            1,
            false,
            3,
            Verdict::Refused(Refusal::MaterializationVersion(1)),
        );
        // Promoted without quarantine.
        check(
            Promoted,
            1,
            true,
            2,
            Verdict::Refused(Refusal::MaterializationIs(Promoted)),
        );
    }
}
