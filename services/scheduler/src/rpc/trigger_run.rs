//! TriggerRun: returns the existing run of the key, or plans and starts a new one.

use servo_mesh::{Caller, Error, Reason};
use servo_model::RunKey;
use servo_model::request::RequestFingerprint;
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::{request_fingerprint, spec_difference, v1 as pb};

use super::Scheduler;
use super::retry_run::{self, RepeatedPart};
use super::support::start_run::{Call, RunStart, Started, new_run, start_run};
use super::support::{errors, generations};
use crate::core::{Decision, KeyPolicy, decide};
use crate::forward::ForwardableCommand;
use crate::reads::runs;
use crate::run_lookup::{ExistingRun, RunQuery};
use crate::store::conflicts;

/// How often the key is looked up in all, because a concurrent call may take it in between.
const RACES_MAX: usize = 5;

/// A validated request.
struct TriggerRequest {
    call: Call,
    key: RunKey,
    policy: KeyPolicy,
    spec: pb::RunSpec,
    fingerprint: RequestFingerprint,
}

pub(super) async fn trigger_run(
    scheduler: &Scheduler,
    caller: &Caller,
    request: pb::TriggerRunRequest,
) -> Result<pb::TriggerRunResponse, Error> {
    let trigger = TriggerRequest::parse(caller, request)?;
    for _ in 0..RACES_MAX {
        if let Some(answer) = trigger.try_answer(scheduler).await? {
            return Ok(answer);
        }
    }
    let message = format!(
        "runs keep starting concurrently under run_key `{}`; try again",
        trigger.key
    );
    Err(Error::new(Reason::VersionConflict, message))
}

impl TriggerRequest {
    fn parse(caller: &Caller, request: pb::TriggerRunRequest) -> Result<TriggerRequest, Error> {
        let key = run_key(&request)?;
        let policy = policy(&request)?;
        let spec = request
            .spec
            .ok_or_else(|| Error::bad_field("spec", "is missing; name what to run"))?;
        let fingerprint = request_fingerprint(&spec)
            .map_err(|error| Error::bad_field("spec", format!("has no canonical form: {error}")))?;
        let (policy_name, print) = (request.run_key_policy.to_string(), fingerprint.to_string());
        let content = ["TriggerRun", &request.run_key, &policy_name, &print];
        let scope = (request.tenant.as_str(), request.workspace.as_str());
        let call = Call::new(
            caller,
            scope,
            &request.request_id,
            &request.comment,
            &content,
        )?;
        Ok(TriggerRequest {
            call,
            key,
            policy,
            spec,
            fingerprint,
        })
    }

    /// Returns `None` when a concurrent call was faster and the key must be looked up again.
    async fn try_answer(
        &self,
        scheduler: &Scheduler,
    ) -> Result<Option<pb::TriggerRunResponse>, Error> {
        let found = scheduler.run_lookup.find(self.query(scheduler)).await?;
        if let Some(run) = found.by_request {
            self.call.check_repeat(&run.requested)?;
            return self.existing_run(scheduler, &run).await.map(Some);
        }
        let Some(first) = found.by_id else {
            return self
                .try_start(scheduler, self.key.clone(), None, self.whole_order())
                .await;
        };
        let newest = generations::newest(scheduler, &self.call, first).await?;
        let same = newest.requested.request_fingerprint == self.fingerprint.to_string();
        let order = match decide(self.policy, newest.state, same) {
            Decision::Existing => return self.existing_run(scheduler, &newest).await.map(Some),
            Decision::Conflict => return Err(self.conflict(scheduler, &newest, same).await?),
            Decision::Repeat => self.whole_order(),
            Decision::Retry => {
                retry_run::order(
                    scheduler,
                    &self.call,
                    &newest,
                    &RepeatedPart::Failed,
                    self.spec.clone(),
                )
                .await?
            }
        };
        let key = generations::next(&newest)?;
        self.try_start(scheduler, key, Some(&newest), order).await
    }

    fn query(&self, scheduler: &Scheduler) -> RunQuery {
        let Call {
            tenant,
            workspace,
            request_id,
            ..
        } = &self.call;
        RunQuery {
            run_id: scheduler.run_ids.derive(tenant, workspace, &self.key),
            tenant: tenant.clone(),
            workspace: workspace.to_string(),
            request_id: (!request_id.is_empty()).then(|| request_id.clone()),
        }
    }

    fn whole_order(&self) -> mesh_pb::PlanOrder {
        mesh_pb::PlanOrder {
            spec: Some(self.spec.clone()),
            ..Default::default()
        }
    }

    fn run_start(
        &self,
        key: RunKey,
        before: Option<&ExistingRun>,
        order: mesh_pb::PlanOrder,
    ) -> RunStart {
        let retry_of = before.map_or_else(String::new, |run| run.run_id.to_string());
        RunStart {
            key,
            fingerprint: self.fingerprint,
            spec: self.spec.clone(),
            order,
            retry_of,
        }
    }

    async fn try_start(
        &self,
        scheduler: &Scheduler,
        key: RunKey,
        before: Option<&ExistingRun>,
        order: mesh_pb::PlanOrder,
    ) -> Result<Option<pb::TriggerRunResponse>, Error> {
        match start_run(scheduler, &self.call, self.run_start(key, before, order)).await? {
            Started::Run { run, event_id } => Ok(Some(pb::TriggerRunResponse {
                run: Some(*run),
                existing: false,
                accepted_event_id: event_id,
            })),
            Started::Taken => Ok(None),
        }
    }

    async fn existing_run(
        &self,
        scheduler: &Scheduler,
        run: &ExistingRun,
    ) -> Result<pb::TriggerRunResponse, Error> {
        let Call {
            tenant, workspace, ..
        } = &self.call;
        let stored = runs::find(
            &scheduler.reads,
            tenant,
            workspace.as_str(),
            &run.requested.run_id,
        )
        .await?;
        let accepted_event_id = crate::wire::ulid(run.event_id);
        Ok(pb::TriggerRunResponse {
            run: Some(stored),
            existing: true,
            accepted_event_id,
        })
    }

    /// Records a request that differs from the run's, and returns the error for the caller.
    async fn conflict(
        &self,
        scheduler: &Scheduler,
        run: &ExistingRun,
        same: bool,
    ) -> Result<Error, Error> {
        let key = &self.key;
        if same {
            let message = format!(
                "run_key `{key}` already belongs to run {}; choose another key",
                run.run_id
            );
            return Ok(refusal(message, run).with("fields", ""));
        }
        let loops = scheduler.reads.store.loops();
        let tenant = &self.call.tenant;
        let recorded = conflicts::is_recorded(loops, tenant, run.run_id, &self.fingerprint)
            .await
            .map_err(errors::store)?;
        if !recorded {
            self.record_conflict(scheduler, run).await?;
        }
        let before = run.requested.spec.clone().unwrap_or_default();
        let changes = spec_difference(&before, &self.spec).unwrap_or_default();
        let fields: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        let fields = fields.join(",");
        let message = format!(
            "run_key `{key}` belongs to run {}, which was requested with another spec ({fields}); choose another \
             key, or run_key_policy FORCE once that run has ended",
            run.run_id
        );
        Ok(refusal(message, run).with("fields", fields))
    }

    async fn record_conflict(&self, scheduler: &Scheduler, run: &ExistingRun) -> Result<(), Error> {
        let new = new_run(
            scheduler,
            &self.call,
            self.run_start(generations::key(run)?, None, self.whole_order()),
            None,
        );
        match scheduler
            .router
            .submit_one(ForwardableCommand::Run(new.into()))
            .await
        {
            // A concurrent call with the same request was faster.
            Err(error) if error.reason() == Reason::AlreadyExists => Ok(()),
            other => other.map(drop),
        }
    }
}

fn run_key(request: &pb::TriggerRunRequest) -> Result<RunKey, Error> {
    match (request.run_key.is_empty(), request.request_id.is_empty()) {
        (false, _) => RunKey::chosen(&request.run_key)
            .map_err(|error| Error::bad_field("run_key", error.to_string())),
        (true, false) => RunKey::manual(&request.request_id)
            .map_err(|error| Error::bad_field("request_id", error.to_string())),
        (true, true) => Err(Error::bad_field(
            "request_id",
            "is empty, and so is run_key; give one of them, so that a repeated call does not start a second run",
        )),
    }
}

fn policy(request: &pb::TriggerRunRequest) -> Result<KeyPolicy, Error> {
    let unknown = |_| {
        let message = format!(
            "{} is not a policy; leave it out for RETURN_EXISTING",
            request.run_key_policy
        );
        Error::bad_field("run_key_policy", message)
    };
    Ok(
        match pb::RunKeyPolicy::try_from(request.run_key_policy).map_err(unknown)? {
            pb::RunKeyPolicy::Unspecified | pb::RunKeyPolicy::ReturnExisting => {
                KeyPolicy::ReturnExisting
            }
            pb::RunKeyPolicy::Reject => KeyPolicy::Reject,
            pb::RunKeyPolicy::RetryIfFailed => KeyPolicy::RetryIfFailed,
            pb::RunKeyPolicy::Force => KeyPolicy::Force,
        },
    )
}

fn refusal(message: String, run: &ExistingRun) -> Error {
    Error::new(Reason::RunKeyConflict, message)
        .with("run_key", &run.requested.run_key)
        .with("run_id", &run.requested.run_id)
}
