//! Verifying and renewing the presigned paths of calls.

use std::time::Duration;

use prost::Message;
use servo_mesh::{Error, Reason};
use servo_model::limits::{HEARTBEAT_TIMEOUT, MANIFEST_TIME_MAX};
use servo_model::presign::{CallbackPath, CallbackVerb};
use servo_proto::v1 as pb;
use tonic::metadata::MetadataMap;

use crate::core::{AttemptNames, PresentedPaths, SignatureError};
use crate::rpc::Callback;

const PRESIGNED: &str = "servo-presigned";
/// Carries the finish path, for a heartbeat or logs whose own path has expired.
pub(crate) const RENEWAL: &str = "servo-presigned-renewal";

const NANOS_MAX: u32 = 999_999_999;

/// A request that needs a presigned path of its attempt.
pub(crate) trait PresignedRequest: Message + Default {
    const VERB: CallbackVerb;
    /// The name of the message in `servo.v1`.
    const NAME: &'static str;

    fn names(&self) -> AttemptNames<'_>;

    /// Tenant, workspace, run and attempt.
    fn names_mut(&mut self) -> [&mut String; 4];
}

macro_rules! presigned_request {
    ($request:ident, $verb:ident) => {
        impl PresignedRequest for pb::$request {
            const VERB: CallbackVerb = CallbackVerb::$verb;
            const NAME: &'static str = stringify!($request);

            fn names(&self) -> AttemptNames<'_> {
                AttemptNames {
                    tenant: &self.tenant,
                    workspace: &self.workspace,
                    run_id: &self.run_id,
                    attempt_id: &self.attempt_id,
                }
            }

            fn names_mut(&mut self) -> [&mut String; 4] {
                [
                    &mut self.tenant,
                    &mut self.workspace,
                    &mut self.run_id,
                    &mut self.attempt_id,
                ]
            }
        }
    };
}

presigned_request!(StartAttemptRequest, Start);
presigned_request!(HeartbeatRequest, Heartbeat);
presigned_request!(AppendLogsRequest, Logs);
presigned_request!(FinishAttemptRequest, Finished);

/// Returns the presigned paths in the metadata of a call.
pub(in crate::rpc) fn presented(metadata: &MetadataMap) -> Result<PresentedPaths<'_>, Error> {
    let text = |name| metadata.get(name).and_then(|value| value.to_str().ok());
    let missing = || {
        Error::new(
            Reason::SignatureInvalid,
            "the call has no servo-presigned metadata; send the envelope's path",
        )
    };
    Ok(PresentedPaths {
        presigned: text(PRESIGNED).ok_or_else(missing)?,
        renewal: text(RENEWAL).unwrap_or_default(),
    })
}

/// Verifies that the paths are valid now and were signed for this request.
pub(in crate::rpc) fn verify<R: PresignedRequest>(
    callback: &Callback,
    presented: PresentedPaths<'_>,
    request: &R,
) -> Result<CallbackPath, Error> {
    callback
        .signatures
        .verify(presented, R::VERB, request.names(), servo_mesh::now())
        .map_err(signature_error)
}

/// Verifies the paths for this verb only, before the request itself is read.
pub(crate) fn verify_path(
    callback: &Callback,
    presented: PresentedPaths<'_>,
    verb: CallbackVerb,
) -> Result<(), Error> {
    callback
        .signatures
        .verify_path(presented, verb, servo_mesh::now())
        .map(drop)
        .map_err(signature_error)
}

/// Returns fresh paths for the next heartbeat and the next logs.
pub(in crate::rpc) fn renewed_paths(
    callback: &Callback,
    path: &CallbackPath,
    heartbeat_timeout: Duration,
) -> pb::RenewedPaths {
    let renew = |verb| {
        callback
            .signatures
            .renew(path, verb, heartbeat_timeout, servo_mesh::now())
    };
    pb::RenewedPaths {
        heartbeat: renew(CallbackVerb::Heartbeat),
        logs: renew(CallbackVerb::Logs),
    }
}

/// Parses the heartbeat timeout that the worker read in its envelope. Any value that a manifest may
/// set is accepted, because only the lifetime of the attempt's own signatures depends on it.
pub(in crate::rpc) fn heartbeat_timeout(
    timeout: Option<prost_types::Duration>,
) -> Result<Duration, Error> {
    let Some(prost_types::Duration { seconds, nanos }) = timeout else {
        return Ok(HEARTBEAT_TIMEOUT);
    };
    let seconds = u64::try_from(seconds)
        .ok()
        .filter(|seconds| *seconds <= MANIFEST_TIME_MAX.as_secs());
    let nanos = u32::try_from(nanos)
        .ok()
        .filter(|nanos| *nanos <= NANOS_MAX);
    let timeout = seconds
        .zip(nanos)
        .map(|(seconds, nanos)| Duration::new(seconds, nanos));
    timeout.filter(|timeout| !timeout.is_zero()).ok_or_else(|| {
        let message = "is zero, negative or longer than 366 days; send the envelope's \
                       timeouts.heartbeat as it is, or leave it out";
        Error::bad_field("heartbeat_timeout", message)
    })
}

fn signature_error(error: SignatureError) -> Error {
    let reason = if error.is_expired() {
        Reason::SignatureExpired
    } else {
        Reason::SignatureInvalid
    };
    Error::new(reason, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heartbeat_timeout_accepts_what_a_manifest_may_set() {
        let parse =
            |seconds, nanos| heartbeat_timeout(Some(prost_types::Duration { seconds, nanos }));
        let year = MANIFEST_TIME_MAX.as_secs().cast_signed();
        assert_eq!(heartbeat_timeout(None).unwrap(), HEARTBEAT_TIMEOUT);
        assert_eq!(parse(0, 1).unwrap(), Duration::from_nanos(1));
        assert_eq!(parse(year, 0).unwrap(), MANIFEST_TIME_MAX);
        for (seconds, nanos) in [
            (0, 0),
            (-1, 0),
            (0, -1),
            (1, i32::MAX),
            (year + 1, 0),
            (i64::MAX, 0),
            (i64::MIN, i32::MIN),
        ] {
            let error = parse(seconds, nanos).unwrap_err().to_string();
            let words = [
                "heartbeat_timeout",
                "longer than 366 days",
                "timeouts.heartbeat as it is",
            ];
            assert!(
                words.iter().all(|word| error.contains(word)),
                "{seconds} s, {nanos} ns: {error}"
            );
        }
    }
}
