//! Routing commands to the holder of their shard: a lane of this instance, or another instance.
//!
//! Every instance accepts every call. Commands are submitted to the own lane first. If it does not
//! hold their shard, they are forwarded to the instance that does, which does not forward them
//! again (see [`forward`](crate::forward)). Both are repeated here until a holder has judged them
//! or the time is over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_mesh::error::reason_of;
use servo_mesh::{Error, Instance, Reason, time_left};
use servo_model::ShardId;
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1 as pb;
use servo_service::{ShardHolders, errors};
use tonic::{Code, Status};

use super::verdicts;
use crate::forward::{ForwardableCommand, Forwarder};
use crate::shards::{Applied, Shards, SubmitError};
use crate::wire;

/// How long a call waits for a holder; a lease expires within this time.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The part of the deadline that is reserved for the answer.
const ANSWER_TIME: Duration = Duration::from_millis(200);
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// One read of the lease rows serves all callers within this time.
const REFRESH_INTERVAL_MIN: Duration = Duration::from_millis(20);

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct CommandRouter {
    shards: Shards,
    holders: ShardHolders,
    own_address: Arc<str>,
    forwarder: Forwarder,
}

/// The result of one command, wherever it was judged.
#[derive(Debug)]
pub(crate) struct Submitted {
    pub applied: mesh_pb::AppliedEvent,
    /// The run afterwards.
    pub run: Option<mesh_pb::RunStanding>,
}

impl CommandRouter {
    pub(crate) fn new(shards: Shards, holders: ShardHolders, own_address: &str) -> CommandRouter {
        CommandRouter {
            shards,
            holders,
            own_address: own_address.into(),
            forwarder: Forwarder::default(),
        }
    }

    /// Submits the commands to the shard's holder and returns their results in order.
    pub(crate) async fn submit(
        &self,
        shard: ShardId,
        commands: Vec<ForwardableCommand>,
    ) -> Result<Vec<Submitted>, Error> {
        let wait = time_left().map_or(WAIT_MAX, |left| {
            left.saturating_sub(ANSWER_TIME).min(WAIT_MAX)
        });
        let until = Instant::now() + wait;
        loop {
            let own = commands.iter().cloned().map(Into::into).collect();
            match self.shards.submit(shard, own).await {
                Ok(applied) => return Ok(applied.into_iter().map(Submitted::from).collect()),
                Err(SubmitError::NotHeld) => {}
                Err(other) => return Err(verdicts::submit_error(&other)),
            }
            if let Some(answers) = self.forward_to_holder(shard, &commands).await? {
                return Ok(answers);
            }
            if Instant::now() + RETRY_DELAY > until {
                return Err(verdicts::submit_error(&SubmitError::NotHeld));
            }
            tokio::time::sleep(RETRY_DELAY).await;
            self.refresh_holders().await?;
        }
    }

    /// Like [`CommandRouter::submit`], for one command.
    pub(crate) async fn submit_one(&self, command: ForwardableCommand) -> Result<Submitted, Error> {
        let answers = self.submit(command.shard(), vec![command]).await?;
        let missing = || Error::new(Reason::Internal, "the shard gave no answer");
        answers.into_iter().next().ok_or_else(missing)
    }

    /// Returns `None` when no other instance seems to hold the shard, or when it did not judge all
    /// commands.
    async fn forward_to_holder(
        &self,
        shard: ShardId,
        commands: &[ForwardableCommand],
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
            .flat_map(|command| command.records(shard))
            .collect();
        match self.forwarder.forward(holder, events, commands.len()).await {
            // A retry is safe, because event ids and idempotency keys identify the events.
            Ok(answers) if answers.iter().any(was_not_judged) => Ok(None),
            Ok(answers) => {
                let submitted = |mut applied: mesh_pb::AppliedEvent| Submitted {
                    run: applied.run.take(),
                    applied,
                };
                Ok(Some(answers.into_iter().map(submitted).collect()))
            }
            // It is unknown whether the holder stored the commands, so they are submitted again.
            Err(status) if status.code() == Code::Unavailable => Ok(None),
            Err(status) => Err(forwarded_error(&status)),
        }
    }

    /// The other instance that holds the shard, according to the leases now.
    pub(crate) async fn other_holder(&self, shard: ShardId) -> Result<Option<Instance>, Error> {
        self.refresh_holders().await?;
        Ok(self.known_other_holder(shard))
    }

    fn known_other_holder(&self, shard: ShardId) -> Option<Instance> {
        self.holders
            .of(shard)
            .filter(|holder| holder.address != self.own_address)
    }

    async fn refresh_holders(&self) -> Result<(), Error> {
        let refreshed = self.holders.fresh(REFRESH_INTERVAL_MIN).await;
        refreshed.map_err(errors::store)
    }
}

/// Whether the command was not judged, because the shard has moved or its holder could not store
/// it.
fn was_not_judged(applied: &mesh_pb::AppliedEvent) -> bool {
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
    fn from(applied: Applied) -> Submitted {
        Submitted {
            applied: verdicts::applied_event(&applied),
            run: applied.run.as_ref().map(wire::run_standing),
        }
    }
}
