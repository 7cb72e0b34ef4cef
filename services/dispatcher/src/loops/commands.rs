//! Folding commands: pauses and what workers were told, also by other instances.

use std::sync::Arc;

use servo_model::{TenantId, WorkerId};
use servo_proto::v1 as pb;
use servo_store::{Store, StoreError};
use tokio::sync::Mutex;

use super::engine::{Engine, Message};
use super::leases::LeaseLoop;
use crate::core::{Pause, WorkerKey};
use crate::rpc::EVERYBODY;
use crate::store::{self, CommandedWorker, PauseRow};
use crate::wire;

const KILL: i16 = pb::WorkerCommand::Kill as i16;

/// The rows were written together with their events; folding them is taking them to heart.
pub(crate) struct CommandLoop {
    store: Store,
    engine: Engine,
    leases: Arc<LeaseLoop>,
    /// The heads up to which everything is known here.
    known: Mutex<Vec<i64>>,
}

impl CommandLoop {
    pub(crate) fn new(store: &Store, engine: Engine, leases: Arc<LeaseLoop>) -> CommandLoop {
        CommandLoop {
            store: store.clone(),
            engine,
            leases,
            known: Mutex::new(Vec::new()),
        }
    }

    pub(crate) async fn run_once(&self) -> Result<(), StoreError> {
        let shards = store::heads(self.store.loops()).await?;
        let heads: Vec<i64> = shards.iter().map(|(_, head, _)| *head).collect();
        let mut known = self.known.lock().await;
        if *known == heads {
            return Ok(());
        }
        let pauses = store::active_pauses(self.store.loops()).await?;
        self.engine.tell(Message::Pauses(
            pauses.into_iter().filter_map(pause).collect(),
        ));
        let commanded = store::commanded_workers(self.store.loops()).await?;
        commanded
            .into_iter()
            .filter_map(drain)
            .for_each(|told| self.engine.tell(told));
        self.move_watermarks(&shards).await?;
        *known = heads;
        Ok(())
    }

    /// What was appended after we looked is looked at again.
    async fn move_watermarks(&self, shards: &[(i16, i64, i64)]) -> Result<(), StoreError> {
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

/// A row that names nobody we know pauses nobody.
fn pause(row: PauseRow) -> Option<Pause> {
    let named = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
    Some(Pause {
        pause_id: row.pause_id.into(),
        tenant: scope(&row.tenant)?,
        workspace: if row.workspace.is_empty() {
            None
        } else {
            Some(row.workspace.parse().ok()?)
        },
        pool: named(&row.pool),
    })
}

fn drain((tenant, worker, command, cut_off_at): CommandedWorker) -> Option<Message> {
    let drain = pb::PullDrain {
        deadline: cut_off_at.map(wire::stored_time),
        kill: command == KILL,
    };
    let worker = WorkerKey {
        tenant: scope(&tenant)?,
        id: WorkerId::from_bytes(*worker.as_bytes()),
    };
    Some(Message::Drain(worker, drain))
}

/// One tenant, or `Some(None)` for everybody; `None` for what is no name.
fn scope(tenant: &str) -> Option<Option<TenantId>> {
    if tenant == EVERYBODY {
        Some(None)
    } else {
        tenant.parse().ok().map(Some)
    }
}
