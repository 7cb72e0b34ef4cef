//! Applying pauses and worker commands, including those that other instances accepted.

use std::sync::Arc;

use servo_model::{Position, ShardId, WorkerId};
use servo_proto::{proto_time, v1 as pb};
use servo_store::{Store, StoreError};
use tokio::sync::Mutex;

use crate::admission_shards::AdmissionLeases;
use crate::core::{Pause, WorkerKey};
use crate::engine::{Engine, Message};
use crate::store::{self, CommandedWorker, PauseRow};

const KILL: i16 = pb::WorkerCommand::Kill as i16;

/// Applies pause, drain and kill commands to the engine's memory. The rows were committed together
/// with their events, so there is nothing to store here but the watermark.
pub(crate) struct CommandLoop {
    store: Store,
    engine: Engine,
    leases: Arc<AdmissionLeases>,
    /// Heads of the shards up to which all commands are applied.
    applied_heads: Mutex<Vec<Position>>,
}

impl CommandLoop {
    pub(crate) fn new(store: &Store, engine: Engine, leases: Arc<AdmissionLeases>) -> CommandLoop {
        CommandLoop {
            store: store.clone(),
            engine,
            leases,
            applied_heads: Mutex::new(Vec::new()),
        }
    }

    pub(crate) async fn run_once(&self) -> Result<(), StoreError> {
        let shards = store::heads(self.store.loops()).await?;
        let heads: Vec<Position> = shards.iter().map(|(_, head, _)| *head).collect();
        let mut applied_heads = self.applied_heads.lock().await;
        if *applied_heads == heads {
            return Ok(());
        }
        let pauses = store::active_pauses(self.store.loops()).await?;
        let pauses = pauses.into_iter().filter_map(core_pause).collect();
        self.engine.send(Message::Pauses(pauses)).await;
        let commanded = store::commanded_workers(self.store.loops()).await?;
        for message in commanded.into_iter().map(drain_message) {
            self.engine.send(message).await;
        }
        self.move_watermarks(&shards).await?;
        *applied_heads = heads;
        Ok(())
    }

    /// Moves the watermarks of the shards held here. An event that was appended after `shards` was
    /// read is applied by the next pass.
    async fn move_watermarks(
        &self,
        shards: &[(ShardId, Position, Position)],
    ) -> Result<(), StoreError> {
        let leases = self.leases.held().await;
        for (shard, head, watermark) in shards
            .iter()
            .filter(|(_, head, watermark)| head > watermark)
        {
            if let Some(lease) = leases.iter().find(|lease| lease.shard() == *shard) {
                self.store
                    .loops()
                    .fence(lease, *watermark, *head)
                    .await?
                    .commit()
                    .await?;
            }
        }
        Ok(())
    }
}

/// Returns `None` for a row whose workspace is not a valid name.
fn core_pause(row: PauseRow) -> Option<Pause> {
    let named = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
    Some(Pause {
        pause_id: row.pause_id.into(),
        tenant: row.tenant,
        workspace: if row.workspace.is_empty() {
            None
        } else {
            Some(row.workspace.parse().ok()?)
        },
        pool: named(&row.pool),
    })
}

fn drain_message((tenant, worker, command, cut_off_at): CommandedWorker) -> Message {
    let drain = pb::PullDrain {
        deadline: cut_off_at.map(proto_time),
        kill: command == KILL,
    };
    let worker = WorkerKey {
        tenant,
        id: WorkerId::from_bytes(*worker.as_bytes()),
    };
    Message::DrainWorker(worker, drain)
}
