//! TriggerRun: look whether the run exists; if not, plan what is wanted and begin it.

use servo_mesh::{Caller, Error, Reason};
use servo_model::RunKey;
use servo_model::request::RequestFingerprint;
use servo_proto::{request_fingerprint, spec_difference, v1};
use servo_store::query;
use uuid::Uuid;

use super::retry_run::{self, Scope};
use super::start::{Call, Start, Started, request, start};
use super::{Scheduler, answer, generations, get_run};
use crate::core::{Decision, KeyPolicy, decide};
use crate::known::Wanted;
use crate::shards::Ask;
use crate::store::KnownRun;

/// How often the key is looked at anew after somebody else was faster.
const RACES_MAX: usize = 5;

/// What is asked for, doubted once.
struct Wish {
    call: Call,
    key: RunKey,
    policy: KeyPolicy,
    spec: v1::RunSpec,
    fingerprint: RequestFingerprint,
}

pub(super) async fn trigger_run(
    scheduler: &Scheduler,
    caller: &Caller,
    asked: v1::TriggerRunRequest,
) -> Result<v1::TriggerRunResponse, Error> {
    let wish = Wish::read(caller, asked)?;
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

impl Wish {
    fn read(caller: &Caller, asked: v1::TriggerRunRequest) -> Result<Wish, Error> {
        let key = run_key(&asked)?;
        let policy = policy(&asked)?;
        let spec = asked
            .spec
            .ok_or_else(|| Error::bad_field("spec", "is missing; say what to run"))?;
        let fingerprint = request_fingerprint(&spec)
            .map_err(|error| Error::bad_field("spec", format!("has no canonical form: {error}")))?;
        let (policy_name, print) = (asked.run_key_policy.to_string(), fingerprint.to_string());
        let said = ["TriggerRun", &asked.run_key, &policy_name, &print];
        let scope = (asked.tenant.as_str(), asked.workspace.as_str());
        let call = Call::new(caller, scope, &asked.request_id, &asked.comment, &said)?;
        Ok(Wish {
            call,
            key,
            policy,
            spec,
            fingerprint,
        })
    }

    /// The answer, or nothing when somebody else was faster and the key must be looked at anew.
    async fn follow(&self, scheduler: &Scheduler) -> Result<Option<v1::TriggerRunResponse>, Error> {
        let found = scheduler.known.find(self.wanted(scheduler)).await?;
        if let Some(run) = found.by_request {
            self.call.check_repeat(&run.asked)?;
            return self.existing(scheduler, &run).await.map(Some);
        }
        let Some(first) = found.by_id else {
            return self
                .begin(scheduler, self.key.clone(), None, self.everything())
                .await;
        };
        let newest = generations::newest(scheduler, &self.call, first).await?;
        let same = newest.asked.request_fingerprint == self.fingerprint.to_string();
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

    fn wanted(&self, scheduler: &Scheduler) -> Wanted {
        let Call {
            tenant,
            workspace,
            request_id,
            ..
        } = &self.call;
        Wanted {
            run_id: scheduler.run_ids.derive(tenant, workspace, &self.key),
            tenant: tenant.to_string(),
            workspace: workspace.to_string(),
            request_id: (!request_id.is_empty()).then(|| request_id.clone()),
        }
    }

    fn everything(&self) -> v1::PlanOrder {
        v1::PlanOrder {
            spec: Some(self.spec.clone()),
            ..Default::default()
        }
    }

    fn start(&self, key: RunKey, before: Option<&KnownRun>, order: v1::PlanOrder) -> Start {
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
        before: Option<&KnownRun>,
        order: v1::PlanOrder,
    ) -> Result<Option<v1::TriggerRunResponse>, Error> {
        match start(scheduler, &self.call, self.start(key, before, order)).await? {
            Started::Run { run, event_id } => Ok(Some(v1::TriggerRunResponse {
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
        run: &KnownRun,
    ) -> Result<v1::TriggerRunResponse, Error> {
        let Call {
            tenant, workspace, ..
        } = &self.call;
        let stored = get_run::find(
            scheduler,
            tenant.as_str(),
            workspace.as_str(),
            &run.asked.run_id,
        )
        .await?;
        let accepted_event_id = crate::wire::ulid(run.event_id);
        Ok(v1::TriggerRunResponse {
            run: Some(stored),
            existing: true,
            accepted_event_id,
        })
    }

    /// Records a request that is another one than the run's, and answers what the caller is told.
    async fn conflict(
        &self,
        scheduler: &Scheduler,
        run: &KnownRun,
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
        let before = run.asked.spec.clone().unwrap_or_default();
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

    async fn is_recorded(&self, scheduler: &Scheduler, run: &KnownRun) -> Result<bool, Error> {
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

    async fn record(&self, scheduler: &Scheduler, run: &KnownRun) -> Result<(), Error> {
        let new = request(
            scheduler,
            &self.call,
            self.start(generations::key(run)?, None, self.everything()),
            None,
        );
        match scheduler.route.submit_one(Ask::Run(new.into())).await {
            // Somebody with the same request was faster.
            Err(error) if error.reason() == Reason::AlreadyExists => Ok(()),
            other => other.map(drop),
        }
    }
}

fn run_key(asked: &v1::TriggerRunRequest) -> Result<RunKey, Error> {
    match (asked.run_key.is_empty(), asked.request_id.is_empty()) {
        (false, _) => RunKey::chosen(&asked.run_key)
            .map_err(|error| Error::bad_field("run_key", error.to_string())),
        (true, false) => RunKey::manual(&asked.request_id)
            .map_err(|error| Error::bad_field("request_id", error.to_string())),
        (true, true) => Err(Error::bad_field(
            "request_id",
            "is empty, and so is run_key; give one of them, so that a repeated call is no second run",
        )),
    }
}

fn policy(asked: &v1::TriggerRunRequest) -> Result<KeyPolicy, Error> {
    let unknown = |_| {
        let told = format!(
            "{} is no policy; leave it out for RETURN_EXISTING",
            asked.run_key_policy
        );
        Error::bad_field("run_key_policy", told)
    };
    Ok(
        match v1::RunKeyPolicy::try_from(asked.run_key_policy).map_err(unknown)? {
            v1::RunKeyPolicy::Unspecified | v1::RunKeyPolicy::ReturnExisting => {
                KeyPolicy::ReturnExisting
            }
            v1::RunKeyPolicy::Reject => KeyPolicy::Reject,
            v1::RunKeyPolicy::RetryIfFailed => KeyPolicy::RetryIfFailed,
            v1::RunKeyPolicy::Force => KeyPolicy::Force,
        },
    )
}

fn refusal(message: String, run: &KnownRun) -> Error {
    Error::new(Reason::RunKeyConflict, message)
        .with("run_key", &run.asked.run_key)
        .with("run_id", &run.asked.run_id)
}
