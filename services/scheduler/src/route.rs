//! The way to whoever holds a run's shard: here, or one hop away.
//!
//! Any instance takes any call. What belongs to a shard that another one holds is passed on to it as events; that one
//! judges them or says that it no longer holds the shard, and passes nothing on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_mesh::error::reason_of;
use servo_mesh::{Error, Holders, Instance, Reason, time_left};
use servo_model::Stream;
use servo_proto::v1 as pb;
use servo_store::LoopStore;
use tonic::{Code, Status};

use crate::core::{Refusal, Verdict};
use crate::forward::Forwarder;
use crate::shards::{Applied, Command, CommandOutcome, Shards, SubmitError};
use crate::wire;

/// How long a shard may be without a holder before the caller is told so: a lease runs out within it.
const PATIENCE: Duration = Duration::from_secs(10);
/// What is left of the deadline for the answer.
const MARGIN: Duration = Duration::from_millis(200);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Route {
    shards: Shards,
    holders: Holders,
    loops: LoopStore,
    own_address: Arc<str>,
    forward: Forwarder,
}

/// What came of one ask, wherever it was judged.
#[derive(Debug)]
pub(crate) struct Submitted {
    pub applied: pb::AppliedEvent,
    /// The run as it stands then.
    pub run: Option<pb::RunStanding>,
}

impl Route {
    pub(crate) fn new(
        shards: Shards,
        holders: Holders,
        loops: LoopStore,
        own_address: &str,
    ) -> Route {
        Route {
            shards,
            holders,
            loops,
            own_address: own_address.into(),
            forward: Forwarder::default(),
        }
    }

    /// Has the asks judged by the shard's holder, and answers for each in its order.
    pub(crate) async fn submit(
        &self,
        shard: i16,
        commands: Vec<Command>,
    ) -> Result<Vec<Submitted>, Error> {
        let patience =
            time_left().map_or(PATIENCE, |left| left.saturating_sub(MARGIN).min(PATIENCE));
        let until = Instant::now() + patience;
        loop {
            match self.shards.submit(shard, commands.clone()).await {
                Ok(done) => return Ok(done.into_iter().map(Submitted::from).collect()),
                Err(SubmitError::NotHeld) => {}
                Err(other) => return Err(submit_error(&other)),
            }
            if let Some(answers) = self.forward_to_holder(shard, &commands).await? {
                return Ok(answers);
            }
            if Instant::now() + LOOK_AGAIN > until {
                return Err(submit_error(&SubmitError::NotHeld));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
            self.look().await?;
        }
    }

    /// Like [`Route::submit`], for one.
    pub(crate) async fn submit_one(&self, ask: Command) -> Result<Submitted, Error> {
        let answers = self.submit(ask.run_id().shard(), vec![ask]).await?;
        let missing = || Error::new(Reason::Internal, "the shard gave no answer");
        answers.into_iter().next().ok_or_else(missing)
    }

    /// Nothing when nobody else seems to hold the shard.
    async fn forward_to_holder(
        &self,
        shard: i16,
        commands: &[Command],
    ) -> Result<Option<Vec<Submitted>>, Error> {
        let holder = match self.known_other_holder(shard) {
            Some(known) => Some(known),
            None => self.other_holder(shard).await?,
        };
        let Some(holder) = holder else {
            return Ok(None);
        };
        let events = commands
            .iter()
            .flat_map(|ask| wire::records(ask, shard))
            .collect();
        match self.forward.pass(holder, events, commands.len()).await {
            // Events are known by their ids and keys when they come again.
            Ok(answers) if answers.iter().any(was_not_judged) => Ok(None),
            Ok(answers) => {
                let submitted = |mut applied: pb::AppliedEvent| Submitted {
                    run: applied.run.take(),
                    applied,
                };
                Ok(Some(answers.into_iter().map(submitted).collect()))
            }
            // Whether it was judged may be unknown.
            Err(status) if status.code() == Code::Unavailable => Ok(None),
            Err(status) => Err(forwarded_error(&status)),
        }
    }

    /// Who else holds the shard, as the leases tell just now.
    pub(crate) async fn other_holder(&self, shard: i16) -> Result<Option<Instance>, Error> {
        self.look().await?;
        Ok(self.known_other_holder(shard))
    }

    fn known_other_holder(&self, shard: i16) -> Option<Instance> {
        self.holders
            .of(shard)
            .filter(|holder| holder.address != self.own_address)
    }

    async fn look(&self) -> Result<(), Error> {
        let leases = self.loops.holders(Stream::Execution).await;
        let leases = leases.map_err(|error| Error::new(Reason::NotReady, error.to_string()))?;
        self.holders
            .learn(leases.into_iter().map(|lease| (lease.shard, lease.address)));
        Ok(())
    }
}

/// What is told of a run whose events are no longer folded.
pub(crate) const SET_ASIDE: &str = "the run is set aside; GetRun's set_aside_reason says why";

/// Why nothing came of it, as callers are told.
pub(crate) fn submit_error(why: &SubmitError) -> Error {
    match why {
        SubmitError::NotHeld => Error::new(
            Reason::NotHolder,
            "no instance holds the run's shard just now; try again",
        ),
        SubmitError::KeyTaken => Error::new(Reason::AlreadyExists, why.to_string()),
        SubmitError::Unavailable(_) | SubmitError::Stopped => {
            Error::new(Reason::NotReady, why.to_string())
        }
    }
}

/// It was not judged, because the shard has moved or its holder could not store anything.
fn was_not_judged(applied: &pb::AppliedEvent) -> bool {
    matches!(
        applied.refusal(),
        pb::ErrorReason::NotHolder | pb::ErrorReason::NotReady
    )
}

fn forwarded_error(status: &Status) -> Error {
    Error::new(
        reason_of(status).unwrap_or(Reason::DependencyUnavailable),
        status.message(),
    )
}

impl From<Applied> for Submitted {
    fn from(done: Applied) -> Submitted {
        Submitted {
            applied: applied(&done),
            run: done.run.as_ref().map(wire::standing),
        }
    }
}

/// What came of an ask, as events of other instances are answered.
pub(crate) fn applied(done: &Applied) -> pb::AppliedEvent {
    let accepted = |acceptance: pb::Acceptance| pb::AppliedEvent {
        acceptance: acceptance.into(),
        event_id: wire::ulid(done.event_id),
        ..Default::default()
    };
    match &done.outcome {
        CommandOutcome::Fold(Verdict::Folded) => accepted(pb::Acceptance::Folded),
        CommandOutcome::Fold(Verdict::Duplicate) => accepted(pb::Acceptance::Duplicate),
        CommandOutcome::Fold(Verdict::Late) => accepted(pb::Acceptance::Late),
        CommandOutcome::Fold(Verdict::Refused(refusal)) => {
            refused(reason(refusal), &refusal.to_string())
        }
        // The event that stands in the ledger is another one; whoever asks reads the run for it.
        CommandOutcome::Exists => pb::AppliedEvent {
            event_id: String::new(),
            ..accepted(pb::Acceptance::Duplicate)
        },
        CommandOutcome::Conflict => {
            refused(Reason::RunKeyConflict, "the key stands for another request")
        }
        CommandOutcome::RunUnknown => refused(Reason::RunNotFound, "the run is not known"),
        CommandOutcome::StaleAdmission => {
            refused(Reason::StaleAttempt, "the claim's lease is not the newest")
        }
        CommandOutcome::OverLimit(excess) => refused(Reason::QuotaExceeded, &excess.to_string()),
        CommandOutcome::NoCapacity => {
            refused(Reason::InvalidState, "there is no place for the run yet")
        }
        CommandOutcome::SetAside => refused(Reason::InvalidState, SET_ASIDE),
        CommandOutcome::Invalid(why) => refused(Reason::InvalidField, why),
        CommandOutcome::TooLarge(why) => refused(Reason::MessageTooLarge, why),
    }
}

pub(crate) fn refused(reason: Reason, message: &str) -> pb::AppliedEvent {
    pb::AppliedEvent {
        acceptance: pb::Acceptance::Refused.into(),
        refusal: reason.into(),
        message: message.to_owned(),
        ..Default::default()
    }
}

/// The reason that callers are given for a refusal of the fold.
pub(crate) fn reason(refusal: &Refusal) -> Reason {
    match refusal {
        Refusal::TaskUnknown => Reason::TaskNotFound,
        Refusal::AttemptUnknown => Reason::AttemptUnknown,
        Refusal::StaleAttempt => Reason::StaleAttempt,
        Refusal::AlreadyStarted => Reason::AlreadyStarted,
        Refusal::AttemptCancelled => Reason::AttemptCancelled,
        Refusal::OutcomeConflict => Reason::OutcomeConflict,
        Refusal::RunIs(_)
        | Refusal::NotReady(_)
        | Refusal::NoAttempt
        | Refusal::NotDue
        | Refusal::VersionIs(_) => Reason::InvalidState,
        Refusal::Version(_) | Refusal::DataVersion(_) => Reason::VersionConflict,
    }
}
