//! AppendLogs: stores lines that an attempt wrote.

use prost::Message;
use servo_mesh::{Error, Reason};
use servo_model::Digest;
use servo_proto::v1 as pb;
use uuid::Uuid;

use super::Callback;
use super::support::presigned::verify;
use crate::core::{PresentedPaths, truncate};
use crate::store::LogBatch;

const LINES_MAX: usize = 1_000;
const LINES_BYTES_MAX: usize = 1 << 20;
/// The limit that the documentation of `LogLine.text` promises.
const LINE_BYTES_MAX: usize = 16 << 10;

pub(crate) async fn append_logs(
    callback: &Callback,
    presented: PresentedPaths<'_>,
    request: pb::AppendLogsRequest,
) -> Result<pb::AppendLogsResponse, Error> {
    let path = verify(callback, presented, &request)?;
    let mut lines = request.lines;
    lines
        .iter_mut()
        .for_each(|line| truncate(&mut line.text, LINE_BYTES_MAX));
    let kept = pb::AppendLogsRequest {
        lines,
        dropped_lines: request.dropped_lines,
        ..Default::default()
    };
    let count = kept.lines.len();
    let lines = kept.encode_to_vec();
    if count > LINES_MAX || lines.len() > LINES_BYTES_MAX {
        let message = format!(
            "a batch of {count} lines and {} bytes is too large; send at most {LINES_MAX} lines and {LINES_BYTES_MAX} bytes",
            lines.len()
        );
        return Err(Error::new(Reason::MessageTooLarge, message));
    }
    if !callback
        .logs
        .within_limits(path.attempt, count, lines.len())
    {
        return Ok(pb::AppendLogsResponse {
            rejected_lines: count as u64,
        });
    }
    let stored = callback.logs.append(LogBatch {
        tenant: path.tenant.clone(),
        workspace: request.workspace,
        run: Uuid::from_bytes(*path.run.as_bytes()),
        attempt: Uuid::from_bytes(*path.attempt.as_bytes()),
        session: session_number(&request.session),
        sequence: i64::try_from(request.sequence).unwrap_or(i64::MAX),
        lines,
    });
    stored.await?;
    callback.metrics.note_lines(path.tenant.as_str(), count);
    Ok(pb::AppendLogsResponse { rejected_lines: 0 })
}

/// Hashes the session into the number that identifies it in the table.
fn session_number(session: &str) -> i64 {
    let digest = Digest::of(session);
    i64::from_be_bytes(*digest.as_bytes().first_chunk().expect("32 bytes have 8"))
}
