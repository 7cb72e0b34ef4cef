//! Envelopes: everything that a worker needs for one attempt, signed for that worker.

use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use prost::Message;
use prost::bytes::Bytes;
use servo_model::limits::{
    DISPATCH_ACK_TIMEOUT, ENVELOPE_BYTES_MAX, FINISH_SIGNATURE_GRACE, HEARTBEAT_TIMEOUT,
};
use servo_model::presign::{CallbackPath, CallbackVerb, KeyRing, SignatureGrace};
use servo_model::{TaskKey, TenantScope, Timestamp, WorkerId};
use servo_proto::{proto_time, v1 as pb};
use sha2::Sha256;

use crate::core::{DispatchDetails, LiveAttempt};
use crate::inputs::{EnvelopeInputs, InputList};
use crate::stored_plan::StoredPlan;
use crate::wire;

/// How long user code may run when the asset sets no timeout.
const EXECUTION_TIMEOUT: Duration = Duration::from_secs(3600);
/// Heartbeats per heartbeat timeout. With three, one lost heartbeat does not time an attempt out.
const BEATS_PER_TIMEOUT: u32 = 3;

/// Signs envelopes and callback paths.
#[derive(Debug, Clone)]
pub(crate) struct Signer {
    pub(crate) callbacks: KeyRing,
    /// The secret that the keys of all workers are derived from.
    pub(crate) envelope_secret: Arc<[u8]>,
    pub(crate) envelope_key_id: Arc<str>,
    pub(crate) callback_url: Arc<str>,
    pub(crate) output_base: Arc<str>,
    pub(crate) heartbeat_interval: Duration,
    /// The grace that the callback service allows.
    pub(crate) grace: SignatureGrace,
}

/// Why an envelope cannot be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoEnvelope {
    #[error("the plan has no task {0}")]
    NoSuchTask(u32),
    #[error(
        "the envelope would have {0} bytes, and {ENVELOPE_BYTES_MAX} are allowed; shorten the configuration of the asset or the run"
    )]
    TooLarge(usize),
}

impl Signer {
    /// Derives the key of one session of a worker. Every instance derives the same key.
    pub(crate) fn worker_key(
        &self,
        tenant: &TenantScope,
        worker: WorkerId,
        session: &str,
    ) -> [u8; 32] {
        hmac(
            &self.envelope_secret,
            format!("envelope key v1\n{tenant}\n{worker}\n{session}").as_bytes(),
        )
    }

    pub(crate) fn envelope(
        &self,
        stored: &StoredPlan,
        live: &LiveAttempt,
        resolved: &EnvelopeInputs,
        key: &[u8; 32],
        now: Timestamp,
    ) -> Result<pb::SignedEnvelope, NoEnvelope> {
        let envelope: Bytes = self
            .unsigned(stored, live, resolved, now)?
            .encode_to_vec()
            .into();
        let signature = hmac(key, &envelope).to_vec().into();
        let signed = pb::SignedEnvelope {
            envelope,
            key_id: self.envelope_key_id.to_string(),
            signature,
        };
        match signed.encoded_len() {
            bytes if bytes > ENVELOPE_BYTES_MAX => Err(NoEnvelope::TooLarge(bytes)),
            _ => Ok(signed),
        }
    }

    fn unsigned(
        &self,
        stored: &StoredPlan,
        live: &LiveAttempt,
        resolved: &EnvelopeInputs,
        now: Timestamp,
    ) -> Result<pb::TaskEnvelope, NoEnvelope> {
        let missing = || NoEnvelope::NoSuchTask(live.task.ordinal);
        let task = stored.task(live.task.ordinal).ok_or_else(missing)?;
        let asset = stored.asset_of(task).ok_or_else(missing)?;
        let key = stored.admission.key(live.task).ok_or_else(missing)?;
        let envelope = self.with_times(self.identity(live, &key), live, asset, now);
        let envelope = with_inputs(envelope, resolved);
        let envelope = with_details(envelope, live.details.as_deref());
        let output_assets = std::iter::once(&asset.asset_key).chain(&asset.also_makes);
        Ok(pb::TaskEnvelope {
            operation: task.operation,
            asset_key: asset.asset_key.clone(),
            partition_key: task.partition_key.clone(),
            code: asset.code.clone(),
            artifact: artifact(&stored.plan, asset),
            asset_config_json: asset.config_json.clone(),
            run_config_json: stored.plan.config_json.clone(),
            output_asset_keys: output_assets.cloned().collect(),
            checks: asset.checks.clone(),
            quarantine: asset.quarantine,
            secrets: asset.secrets.clone(),
            resources: asset.resources.clone(),
            sensor: task.sensor.clone(),
            retry: asset.retry.clone(),
            isolated: asset.isolated,
            code_version: asset.code_version.clone(),
            ..envelope
        })
    }

    /// Sets the fields that identify the attempt, its run and its task.
    fn identity(&self, live: &LiveAttempt, key: &TaskKey) -> pb::TaskEnvelope {
        pb::TaskEnvelope {
            tenant: live.tenant.to_string(),
            workspace: live.plan.workspace.to_string(),
            run_id: live.run.to_string(),
            task: Some(wire::task_ref(live.task)),
            task_id: key.id().to_string(),
            task_key: key.to_string(),
            plan_id: live.plan.plan_id.to_string(),
            attempt: live.attempt,
            attempt_id: live.attempt_id.to_string(),
            idempotency_key: format!("{}:{}", live.run, key.id()),
            fencing_token: live.attempt.into(),
            mode: wire::dispatch_mode(live.pushed).into(),
            output_uri: self.output_uri(live, key),
            ..pb::TaskEnvelope::default()
        }
    }

    /// Adds the deadline, the heartbeat interval and the signed callback paths, whose lifetimes
    /// follow from the asset's timeouts.
    fn with_times(
        &self,
        envelope: pb::TaskEnvelope,
        live: &LiveAttempt,
        asset: &pb::PlannedAsset,
        now: Timestamp,
    ) -> pb::TaskEnvelope {
        let timeouts = asset.timeouts.unwrap_or_default();
        let deadline = now.plus(wire::duration_or(timeouts.execution, EXECUTION_TIMEOUT));
        let silence = wire::duration_or(timeouts.heartbeat, HEARTBEAT_TIMEOUT);
        let interval = self.heartbeat_interval.min(silence / BEATS_PER_TIMEOUT);
        pb::TaskEnvelope {
            timeouts: asset.timeouts,
            deadline: Some(proto_time(deadline)),
            heartbeat_interval: Some(wire::proto_duration(interval)),
            callbacks: Some(self.callbacks(live, &timeouts, deadline, silence, now)),
            ..envelope
        }
    }

    /// Signs one path per verb, because each verb is valid for a different time.
    fn callbacks(
        &self,
        live: &LiveAttempt,
        timeouts: &pb::Timeouts,
        deadline: Timestamp,
        silence: Duration,
        now: Timestamp,
    ) -> pb::CallbackPaths {
        let sign = |verb, until: Timestamp| {
            let path = CallbackPath {
                tenant: live.tenant.clone(),
                workspace: live.plan.workspace.clone(),
                run: live.run,
                attempt: live.attempt_id,
                verb,
            };
            self.callbacks.sign_callback(&path, until.unix_seconds())
        };
        let ack = wire::duration_or(timeouts.dispatch_ack, DISPATCH_ACK_TIMEOUT);
        let started_by = now.plus(ack + self.grace.get());
        let beat_by = now.plus(self.grace.heartbeat_signature_ttl(silence));
        pb::CallbackPaths {
            base_url: self.callback_url.to_string(),
            start: sign(CallbackVerb::Start, started_by),
            heartbeat: sign(CallbackVerb::Heartbeat, beat_by),
            logs: sign(CallbackVerb::Logs, beat_by),
            finished: sign(
                CallbackVerb::Finished,
                deadline.plus(FINISH_SIGNATURE_GRACE),
            ),
        }
    }

    /// Returns where a list of inputs is stored that does not fit into an envelope.
    pub(crate) fn inputs_uri(&self, live: &LiveAttempt) -> String {
        let base = folder(&self.output_base);
        format!(
            "{base}{}/{}/_inputs/{}.jsonl",
            live.tenant, live.plan.workspace, live.attempt_id
        )
    }

    /// Returns the output folder, which belongs to this attempt only.
    fn output_uri(&self, live: &LiveAttempt, key: &TaskKey) -> String {
        let partition = key
            .partition()
            .map(|partition| format!("{partition}/"))
            .unwrap_or_default();
        format!(
            "{}{}/{}/{}/{partition}{}/",
            folder(&self.output_base),
            live.tenant,
            live.plan.workspace,
            key.asset().canonical(),
            live.attempt_id
        )
    }
}

/// Adds the versions that the task reads.
fn with_inputs(envelope: pb::TaskEnvelope, resolved: &EnvelopeInputs) -> pb::TaskEnvelope {
    let (inputs, inputs_uri, inputs_digest) = match &resolved.inputs {
        InputList::Inline(inputs) => (inputs.clone(), String::new(), String::new()),
        InputList::Stored { uri, digest } => (Vec::new(), uri.clone(), digest.clone()),
    };
    pb::TaskEnvelope {
        inputs,
        inputs_uri,
        inputs_digest,
        previous: resolved.previous.clone(),
        ..envelope
    }
}

/// Adds what the scheduler sent with the ready task. It is absent for an attempt that another
/// dispatcher claimed.
fn with_details(envelope: pb::TaskEnvelope, details: Option<&DispatchDetails>) -> pb::TaskEnvelope {
    let Some(details) = details else {
        return envelope;
    };
    pb::TaskEnvelope {
        failures: details.failures,
        item_json: details.item_json.to_string(),
        trace: Some(pb::TraceContext {
            traceparent: details.trace.0.clone(),
            tracestate: details.trace.1.clone(),
        }),
        ..envelope
    }
}

/// Returns the packaged code of an asset: that of the deployment, or the one that the asset names.
fn artifact(plan: &pb::Plan, asset: &pb::PlannedAsset) -> Option<pb::CodeArtifact> {
    let digest = asset
        .code
        .as_ref()
        .map(|code| &code.artifact_digest)
        .filter(|digest| !digest.is_empty())?;
    match plan
        .artifact
        .as_ref()
        .filter(|artifact| artifact.digest == *digest)
    {
        Some(artifact) => Some(artifact.clone()),
        None => Some(pb::CodeArtifact {
            digest: digest.clone(),
            kind: pb::ArtifactKind::SourceArchive.into(),
            ..Default::default()
        }),
    }
}

/// Returns the base with a trailing slash.
fn folder(base: &str) -> String {
    let slash = if base.is_empty() || base.ends_with('/') {
        ""
    } else {
        "/"
    };
    format!("{base}{slash}")
}

pub(crate) fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asset_uses_the_deployments_code_unless_it_names_another() {
        let shared = pb::CodeArtifact {
            digest: "d1".to_owned(),
            kind: pb::ArtifactKind::ContainerImage.into(),
            uri: "registry/image".to_owned(),
            ..Default::default()
        };
        let plan = pb::Plan {
            artifact: Some(shared.clone()),
            ..Default::default()
        };
        let of = |digest: &str| {
            let code = pb::CodeRef {
                artifact_digest: digest.to_owned(),
                ..Default::default()
            };
            artifact(
                &plan,
                &pb::PlannedAsset {
                    code: Some(code),
                    ..Default::default()
                },
            )
        };
        assert_eq!(of("d1"), Some(shared));
        assert_eq!(
            of("d2").map(|other| (other.digest, other.kind)),
            Some(("d2".to_owned(), 1))
        );
        assert_eq!(of(""), None, "a handler of the worker needs no code");
    }

    /// A worker's clock may be off by 45 s. The queue holds an envelope until its start deadline.
    #[test]
    fn f14_signatures_outlive_the_calls_they_are_for() {
        let key = servo_model::presign::SigningKey::new("k", vec![7; 32]).unwrap();
        let signer = Signer {
            callbacks: KeyRing::new(key, []).unwrap(),
            envelope_secret: [0; 32].into(),
            envelope_key_id: "k".into(),
            callback_url: "".into(),
            output_base: "".into(),
            heartbeat_interval: Duration::from_secs(30),
            grace: SignatureGrace::default(),
        };
        let hours = |count: u64| Duration::from_secs(3_600 * count);
        let now = Timestamp::from_unix_seconds(1_000_000_000);
        let deadline = now.plus(hours(10));
        let clock_error = Duration::from_secs(45);
        let silence = Duration::from_secs(300);
        let live = LiveAttempt::sample();
        let paths = signer.callbacks(&live, &pb::Timeouts::default(), deadline, silence, now);
        let good = |path: &str, at: Timestamp| {
            let now = at.plus(clock_error).unix_seconds();
            signer.callbacks.verify_callback(path, now).is_ok()
        };
        assert!(good(&paths.start, now.plus(DISPATCH_ACK_TIMEOUT)));
        assert!(good(&paths.heartbeat, now.plus(silence)) && good(&paths.logs, now.plus(silence)));
        assert!(
            good(&paths.finished, deadline.plus(hours(23))),
            "an outcome that was spooled"
        );
        assert!(!good(&paths.start, deadline), "a start does not live on");
        assert!(
            !good(&paths.heartbeat, deadline) && !good(&paths.logs, deadline),
            "heartbeats renew their signature"
        );
    }

    #[test]
    fn output_base_gets_a_trailing_slash() {
        for (base, expected) in [
            ("", ""),
            ("file:///data", "file:///data/"),
            ("gs://bucket/", "gs://bucket/"),
            ("file:///", "file:///"),
        ] {
            assert_eq!(folder(base), expected);
        }
    }
}
