//! A model of a scheduler that holds all execution shards: snapshots, updates and answers to
//! claims.

use std::collections::{BTreeMap, HashMap};

use servo_model::{
    AdmissionShard, AttemptId, Digest, DispatchId, Epoch, RunId, Stream, TaskKey, TenantId,
};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::admit_request::Message as FromDispatcher;
use servo_proto::mesh::v1::admit_response::Message as ToDispatcher;
use servo_proto::mesh::v1::scheduler_mesh_service_server::SchedulerMeshService;
use servo_proto::v1 as pb;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};

use crate::world::{Shared, TENANT};

type Out = mpsc::UnboundedSender<Result<mesh_pb::AdmitResponse, Status>>;

#[derive(Clone, Default)]
pub(crate) struct Owner(Shared<State>);

#[derive(Default)]
struct State {
    streams: Vec<Out>,
    /// The epoch that each admission shard was last opened with.
    epochs: HashMap<AdmissionShard, Epoch>,
    runs: BTreeMap<RunId, Run>,
    live: BTreeMap<AttemptId, (RunId, mesh_pb::LiveAttempt)>,
    live_max: usize,
    claims: usize,
    refuse_next: usize,
    failed: Vec<String>,
}

struct Run {
    plan_id: Digest,
    keys: Vec<TaskKey>,
    /// Ready tasks with the number of their next attempt.
    ready: BTreeMap<u32, u32>,
}

impl Owner {
    pub(crate) fn offer(&self, run: RunId, plan_id: Digest, plan: &pb::Plan) {
        let keys = plan
            .tasks
            .iter()
            .map(|task| task.task_key.parse().unwrap())
            .collect();
        let ready = (0..)
            .zip(&plan.tasks)
            .map(|(ordinal, _)| (ordinal, 1))
            .collect();
        self.with(|state| {
            state.runs.insert(
                run,
                Run {
                    plan_id,
                    keys,
                    ready,
                },
            );
            let update = mesh_pb::AdmitUpdate {
                shard: run.shard().into(),
                ready: vec![state.ready_of(run)],
                ..mesh_pb::AdmitUpdate::default()
            };
            state.send_all(ToDispatcher::Update(update));
        });
    }

    /// Refuses the next claims and offers their tasks again.
    pub(crate) fn refuse_next(&self, claims: usize) {
        self.with(|state| state.refuse_next = claims);
    }

    pub(crate) fn ended(&self, attempts: &[AttemptId]) {
        self.with(|state| {
            for attempt in attempts {
                let Some((run, _)) = state.live.remove(attempt) else {
                    continue;
                };
                let ended = mesh_pb::EndedAttempt {
                    tenant: TENANT.into(),
                    attempt_id: attempt.to_string(),
                    slot_ms: 1,
                };
                state.send_all(ToDispatcher::Update(mesh_pb::AdmitUpdate {
                    shard: run.shard().into(),
                    ended: vec![ended],
                    ..mesh_pb::AdmitUpdate::default()
                }));
            }
        });
    }

    /// Cancels all live attempts.
    pub(crate) fn cancel_all(&self) {
        self.with(|state| {
            for (run, live) in state.live.values().cloned().collect::<Vec<_>>() {
                state.send_all(ToDispatcher::Update(mesh_pb::AdmitUpdate {
                    shard: run.shard().into(),
                    cancelled: vec![live],
                    ..mesh_pb::AdmitUpdate::default()
                }));
            }
        });
    }

    /// Breaks every stream, as a crash would.
    pub(crate) fn break_streams(&self) {
        self.with(|state| state.streams.clear());
    }

    /// Messages of the attempts that failed because no envelope could be built.
    pub(crate) fn failed(&self) -> Vec<String> {
        self.with(|state| state.failed.clone())
    }

    pub(crate) fn live(&self) -> usize {
        self.with(|state| state.live.len())
    }

    pub(crate) fn live_max(&self) -> usize {
        self.with(|state| state.live_max)
    }

    pub(crate) fn claims(&self) -> usize {
        self.with(|state| state.claims)
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }
}

impl State {
    fn send_all(&mut self, message: ToDispatcher) {
        self.streams
            .retain(|out| out.send(Ok(response(message.clone()))).is_ok());
    }

    fn ready_of(&self, run: RunId) -> mesh_pb::ReadyRun {
        let known = &self.runs[&run];
        let ready = |(ordinal, attempt): (&u32, &u32)| mesh_pb::ReadyTask {
            task: Some(pb::TaskRef {
                ordinal: *ordinal,
                map_index: None,
            }),
            attempt: *attempt,
            ..mesh_pb::ReadyTask::default()
        };
        mesh_pb::ReadyRun {
            tenant: TENANT.into(),
            workspace: "prod".into(),
            run_id: run.to_string(),
            plan_id: known.plan_id.to_string(),
            tasks: known.ready.iter().map(ready).collect(),
            ..mesh_pb::ReadyRun::default()
        }
    }

    fn snapshots(&self, out: &Out) {
        for shard in Stream::Execution.shards() {
            let here = |run: &RunId| run.shard() == shard;
            let snapshot = mesh_pb::AdmitSnapshot {
                shard: shard.into(),
                epoch: 1,
                first: true,
                last: true,
                ready: self
                    .runs
                    .keys()
                    .filter(|run| here(run))
                    .map(|run| self.ready_of(*run))
                    .collect(),
                live: self
                    .live
                    .values()
                    .filter(|(run, _)| here(run))
                    .map(|(_, live)| live.clone())
                    .collect(),
            };
            let _ = out.send(Ok(response(ToDispatcher::Snapshot(snapshot))));
        }
    }

    fn claim(&mut self, index: u32, claim: &mesh_pb::Claim) -> Option<mesh_pb::RefusedClaim> {
        let refusal = |reason: pb::ErrorReason| mesh_pb::RefusedClaim {
            index,
            reason: reason.into(),
            message: String::new(),
        };
        let run: RunId = claim.run_id.parse().unwrap();
        let ordinal = claim.task.as_ref().unwrap().ordinal;
        let shard = TENANT.parse::<TenantId>().unwrap().admission_shard();
        if self.epochs.get(&shard) != Some(&Epoch::new(claim.admission_epoch)) {
            return Some(refusal(pb::ErrorReason::NotHolder));
        }
        let known = self.runs.get_mut(&run).unwrap();
        if known.ready.get(&ordinal) != Some(&claim.attempt) {
            return Some(refusal(pb::ErrorReason::StaleAttempt));
        }
        if self.refuse_next > 0 {
            self.refuse_next -= 1;
            let update = mesh_pb::AdmitUpdate {
                shard: run.shard().into(),
                ready: vec![self.ready_of(run)],
                ..mesh_pb::AdmitUpdate::default()
            };
            self.send_all(ToDispatcher::Update(update));
            return Some(refusal(pb::ErrorReason::Overloaded));
        }
        known.ready.remove(&ordinal);
        let attempt_id =
            DispatchId::new(&run, &known.keys[ordinal as usize], claim.attempt).attempt_id();
        let live = mesh_pb::LiveAttempt {
            tenant: claim.tenant.clone(),
            workspace: "prod".into(),
            run_id: claim.run_id.clone(),
            plan_id: known.plan_id.to_string(),
            task: claim.task,
            attempt_id: attempt_id.to_string(),
            attempt: claim.attempt,
            mode: claim.mode,
            worker_id: claim.worker_id.clone(),
            ..mesh_pb::LiveAttempt::default()
        };
        self.claims += 1;
        self.live.insert(attempt_id, (run, live));
        self.live_max = self.live_max.max(self.live.len());
        None
    }
}

fn response(message: ToDispatcher) -> mesh_pb::AdmitResponse {
    mesh_pb::AdmitResponse {
        message: Some(message),
    }
}

#[tonic::async_trait]
impl SchedulerMeshService for Owner {
    async fn admit(
        &self,
        request: Request<Streaming<mesh_pb::AdmitRequest>>,
    ) -> Result<Response<BoxStream<mesh_pb::AdmitResponse>>, Status> {
        let (out, responses) = mpsc::unbounded_channel();
        let (owner, mut requests) = (self.clone(), request.into_inner());
        tokio::spawn(async move {
            let out = out;
            let weak = out.downgrade();
            let mut first = Some(out);
            while let Ok(Some(request)) = requests.message().await {
                let Some(out) = weak.upgrade() else { return };
                owner.with(|state| match request.message {
                    Some(FromDispatcher::Open(open)) => {
                        let opened = |lease: &mesh_pb::AdmissionLease| {
                            let shard = AdmissionShard::new(lease.admission_shard).unwrap();
                            (shard, Epoch::new(lease.epoch))
                        };
                        state.epochs.extend(open.leases.iter().map(opened));
                        if let Some(out) = first.take() {
                            state.snapshots(&out);
                            state.streams.push(out);
                        }
                    }
                    Some(FromDispatcher::Claims(batch)) => {
                        let claims = (0..).zip(&batch.claims);
                        let refused = claims
                            .filter_map(|(index, claim)| state.claim(index, claim))
                            .collect();
                        let results = mesh_pb::ClaimResults {
                            number: batch.number,
                            refused,
                        };
                        let _ = out.send(Ok(response(ToDispatcher::Results(results))));
                    }
                    Some(FromDispatcher::Returned(batch)) => {
                        let failed = batch.entries.into_iter().filter_map(|entry| entry.error);
                        state.failed.extend(failed.map(|error| error.message));
                    }
                    _ => {}
                });
            }
        });
        Ok(Response::new(Box::pin(
            UnboundedReceiverStream::new(responses).map(|message| message),
        )))
    }
}
