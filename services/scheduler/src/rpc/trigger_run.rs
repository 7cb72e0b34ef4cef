//! TriggerRun: look whether the run exists; if not, plan what is wanted and begin it.

use servo_mesh::{Caller, Error, Reason};
use servo_model::RunKey;
use servo_model::request::RequestFingerprint;
use servo_proto::{request_fingerprint, spec_difference, v1 as pb};
use servo_store::query;
use uuid::Uuid;

use super::retry_run::{self, Scope};
use super::start::{Call, Start, Started, request, start};
use super::{Scheduler, answer, generations, get_run};
use crate::core::{Decision, KeyPolicy, decide};
use crate::run_lookup::RunQuery;
use crate::shards::Command;
use crate::store::ExistingRun;

/// How often the key is looked at anew after somebody else was faster.
const RACES_MAX: usize = 5;

/// What is asked for, doubted once.
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
    let wish = TriggerRequest::read(caller, request)?;
    for _ in 0..RACES_MAX {
        if let Some(answer) = wish.follow(scheduler).await? {
            return Ok(answer);
        }
    }
    let message = format!(
        "others keep starting runs under run_key `{}`; try again",
        wish.key
    );
    Err(Error::new(Reason::VersionConflict, message))
}

impl TriggerRequest {
    fn read(caller: &Caller, request: pb::TriggerRunRequest) -> Result<TriggerRequest, Error> {
        let key = run_key(&request)?;
        let policy = policy(&request)?;
        let spec = request
            .spec
            .ok_or_else(|| Error::bad_field("spec", "is missing; say what to run"))?;
        let fingerprint = request_fingerprint(&spec)
            .map_err(|error| Error::bad_field("spec", format!("has no canonical form: {error}")))?;
        let (policy_name, print) = (request.run_key_policy.to_string(), fingerprint.to_string());
        let said = ["TriggerRun", &request.run_key, &policy_name, &print];
        let scope = (request.tenant.as_str(), request.workspace.as_str());
        let call = Call::new(caller, scope, &request.request_id, &request.comment, &said)?;
        Ok(TriggerRequest {
            call,
            key,
            policy,
            spec,
            fingerprint,
        })
    }

    /// The answer, or nothing when somebody else was faster and the key must be looked at anew.
    async fn follow(&self, scheduler: &Scheduler) -> Result<Option<pb::TriggerRunResponse>, Error> {
        let found = scheduler.run_lookup.find(self.wanted(scheduler)).await?;
        if let Some(run) = found.by_request {
            self.call.check_repeat(&run.requested)?;
            return self.existing(scheduler, &run).await.map(Some);
        }
        let Some(first) = found.by_id else {
            return self
                .begin(scheduler, self.key.clone(), None, self.everything())
                .await;
        };
        let newest = generations::newest(scheduler, &self.call, first).await?;
        let same = newest.requested.request_fingerprint == self.fingerprint.to_string();
        let order = match decide(self.policy, newest.state, same) {
            Decision::Existing => return self.existing(scheduler, &newest).await.map(Some),
            Decision::Conflict => return Err(self.conflict(scheduler, &newest, same).await?),
            Decision::Repeat => self.everything(),
            Decision::Retry => {
                retry_run::order(
                    scheduler,
                    &self.call,
                    &newest,
                    &Scope::Failed,
                    self.spec.clone(),
                )
                .await?
            }
        };
        let key = generations::next(&newest)?;
        self.begin(scheduler, key, Some(&newest), order).await
    }

    fn wanted(&self, scheduler: &Scheduler) -> RunQuery {
        let Call {
            tenant,
            workspace,
            request_id,
            ..
        } = &self.call;
        RunQuery {
            run_id: scheduler.run_ids.derive(tenant, workspace, &self.key),
            tenant: tenant.to_string(),
            workspace: workspace.to_string(),
            request_id: (!request_id.is_empty()).then(|| request_id.clone()),
        }
    }

    fn everything(&self) -> pb::PlanOrder {
        pb::PlanOrder {
            spec: Some(self.spec.clone()),
            ..Default::default()
        }
    }

    fn start(&self, key: RunKey, before: Option<&ExistingRun>, order: pb::PlanOrder) -> Start {
        let retry_of = before.map_or_else(String::new, |run| run.run_id.to_string());
        Start {
            key,
            fingerprint: self.fingerprint,
            spec: self.spec.clone(),
            order,
            retry_of,
        }
    }

    async fn begin(
        &self,
        scheduler: &Scheduler,
        key: RunKey,
        before: Option<&ExistingRun>,
        order: pb::PlanOrder,
    ) -> Result<Option<pb::TriggerRunResponse>, Error> {
        match start(scheduler, &self.call, self.start(key, before, order)).await? {
            Started::Run { run, event_id } => Ok(Some(pb::TriggerRunResponse {
                run: Some(*run),
                existing: false,
                accepted_event_id: event_id,
            })),
            Started::Taken => Ok(None),
        }
    }

    async fn existing(
        &self,
        scheduler: &Scheduler,
        run: &ExistingRun,
    ) -> Result<pb::TriggerRunResponse, Error> {
        let Call {
            tenant, workspace, ..
        } = &self.call;
        let stored = get_run::find(
            scheduler,
            tenant.as_str(),
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

    /// Records a request that is another one than the run's, and answers what the caller is told.
    async fn conflict(
        &self,
        scheduler: &Scheduler,
        run: &ExistingRun,
        same: bool,
    ) -> Result<Error, Error> {
        let key = &self.key;
        if same {
            let message = format!(
                "run_key `{key}` stands for run {} already; choose another key",
                run.run_id
            );
            return Ok(refusal(message, run).with("fields", ""));
        }
        if !self.is_recorded(scheduler, run).await? {
            self.record(scheduler, run).await?;
        }
        let before = run.requested.spec.clone().unwrap_or_default();
        let changes = spec_difference(&before, &self.spec).unwrap_or_default();
        let fields: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        let fields = fields.join(",");
        let message = format!(
            "run_key `{key}` stands for run {}, which was asked for with another spec ({fields}); choose another \
             key, or run_key_policy FORCE once that run has ended",
            run.run_id
        );
        Ok(refusal(message, run).with("fields", fields))
    }

    async fn is_recorded(&self, scheduler: &Scheduler, run: &ExistingRun) -> Result<bool, Error> {
        let select = query(include_str!("../store/conflict.sql"))
            .bind(Uuid::from_bytes(*run.run_id.as_bytes()))
            .bind(self.fingerprint.digest().as_bytes().as_slice())
            .bind(self.call.tenant.as_str());
        let recorded: Vec<(Uuid,)> = scheduler
            .store
            .loops()
            .all(select)
            .await
            .map_err(answer::store)?;
        Ok(!recorded.is_empty())
    }

    async fn record(&self, scheduler: &Scheduler, run: &ExistingRun) -> Result<(), Error> {
        let new = request(
            scheduler,
            &self.call,
            self.start(generations::key(run)?, None, self.everything()),
            None,
        );
        match scheduler.route.submit_one(Command::Run(new.into())).await {
            // Somebody with the same request was faster.
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
            "is empty, and so is run_key; give one of them, so that a repeated call is no second run",
        )),
    }
}

fn policy(request: &pb::TriggerRunRequest) -> Result<KeyPolicy, Error> {
    let unknown = |_| {
        let message = format!(
            "{} is no policy; leave it out for RETURN_EXISTING",
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
