//! Heartbeat: the attempt is alive; the answer says whether to go on.

use servo_mesh::{Error, Reason};
use servo_proto::v1 as pb;

use super::Callback;
use super::support::presigned::{heartbeat_timeout, renewed_paths, verify};
use crate::core::{PresentedPaths, short_text};
use crate::heartbeats::BeatReply;
use crate::store::Heartbeat;

/// 100 % in parts per million.
const WHOLE_PPM: u32 = 1_000_000;
const PROGRESS_BYTES_MAX: usize = 512;
/// Time that user code has to stop before it is killed.
const CANCEL_GRACE_SECONDS: i64 = 30;

pub(crate) async fn heartbeat(
    callback: &Callback,
    presented: PresentedPaths<'_>,
    request: pb::HeartbeatRequest,
) -> Result<pb::HeartbeatResponse, Error> {
    let path = verify(callback, presented, &request)?;
    let task = request
        .task
        .ok_or_else(|| Error::bad_field("task", "is missing; the envelope contains it"))?;
    let timeout = heartbeat_timeout(request.heartbeat_timeout)?;
    let heartbeat = Heartbeat {
        tenant: path.tenant.clone(),
        run: path.run,
        attempt: path.attempt,
        ordinal: column("task.ordinal", task.ordinal)?,
        item: task
            .map_index
            .map_or(Ok(-1), |item| column("task.map_index", item))?,
        progress_ppm: request
            .progress_ppm
            .map(|ppm| ppm.min(WHOLE_PPM).cast_signed()),
        progress_message: short_text(&request.progress_message, PROGRESS_BYTES_MAX),
    };
    let reply = callback.heartbeats.record(heartbeat).await?;
    let interval = callback.signatures.interval();
    Ok(pb::HeartbeatResponse {
        should_cancel: should_cancel(reply)?,
        cancel_grace: Some(prost_types::Duration {
            seconds: CANCEL_GRACE_SECONDS,
            nanos: 0,
        }),
        renewed: Some(renewed_paths(callback, &path, timeout)),
        interval: Some(prost_types::Duration {
            seconds: interval.as_secs().cast_signed(),
            nanos: interval.subsec_nanos().cast_signed(),
        }),
    })
}

fn column(field: &str, number: u32) -> Result<i32, Error> {
    i32::try_from(number).map_err(|_| Error::bad_field(field, "is larger than any task has"))
}

fn should_cancel(reply: BeatReply) -> Result<bool, Error> {
    match reply {
        BeatReply::Continue => Ok(false),
        BeatReply::Stop => Ok(true),
        BeatReply::Stale => Err(Error::new(
            Reason::StaleAttempt,
            "the attempt is no longer the task's active one; stop it",
        )),
        BeatReply::Unknown => Err(Error::new(
            Reason::AttemptUnknown,
            "the attempt is unknown to its run; stop it",
        )),
    }
}
