//! UploadArtifact: stores bytes under their digest, completely or not at all.

use servo_mesh::{Error, Reason};
use servo_model::Digest;
use servo_proto::v1::{ArtifactKind, UploadArtifactRequest, UploadArtifactResponse};
use tonic::{Status, Streaming};

use super::Planner;
use super::support::errors::{artifact_error, store_error};
use super::support::parse::scope;
use crate::artifacts::Upload;
use crate::store::{Scope, artifacts};

const CHUNK_BYTES_MAX: usize = 1024 * 1024;
const ARTIFACT_BYTES_MAX: u64 = 256 * 1024 * 1024;

pub(super) async fn upload_artifact(
    planner: &Planner,
    mut messages: Streaming<UploadArtifactRequest>,
) -> Result<UploadArtifactResponse, Status> {
    let missing = || {
        Error::bad_field(
            "digest",
            "the stream is empty; the first message names digest and kind",
        )
    };
    let first = messages.message().await?.ok_or_else(missing)?;
    let scope = scope(&first)?;
    let (digest, kind) = parse_head(&first)?;
    let dir = planner.artifacts()?;
    let mut upload = dir.begin(&scope).await.map_err(artifact_error)?;
    let mut next = Some(first);
    while let Some(message) = next {
        write_chunk(&mut upload, &scope, &message).await?;
        next = messages.message().await?;
    }
    let found = upload.digest();
    if found != digest {
        let sentence = format!("the bytes hash to {found}, not to {digest}; nothing was stored");
        return Err(Error::new(Reason::DigestMismatch, sentence).into());
    }
    let byte_size = upload.bytes;
    upload
        .finish(&dir.path(&scope, &digest))
        .await
        .map_err(artifact_error)?;
    let mut tx = planner.begin(&scope).await?;
    let size = i64::try_from(byte_size).unwrap_or(i64::MAX);
    let new = artifacts::insert(&mut tx, &scope, &digest, kind, size)
        .await
        .map_err(store_error)?;
    tx.commit().await.map_err(store_error)?;
    Ok(UploadArtifactResponse {
        digest: digest.to_string(),
        byte_size,
        existed: !new,
    })
}

fn parse_head(first: &UploadArtifactRequest) -> Result<(Digest, i16), Error> {
    let digest = first
        .digest
        .parse()
        .map_err(|error: servo_model::ids::IdError| {
            Error::bad_field("digest", error.to_string())
        })?;
    let kind = ArtifactKind::try_from(first.kind)
        .ok()
        .filter(|kind| *kind != ArtifactKind::Unspecified);
    let kind = kind.and_then(|kind| i16::try_from(kind as i32).ok());
    Ok((
        digest,
        kind.ok_or_else(|| Error::bad_field("kind", "is missing; name the kind of the artifact"))?,
    ))
}

async fn write_chunk(
    upload: &mut Upload,
    scope: &Scope,
    message: &UploadArtifactRequest,
) -> Result<(), Error> {
    if message.tenant != scope.tenant.as_str() || message.workspace != scope.workspace.as_str() {
        return Err(Error::bad_field(
            "workspace",
            "changes within the stream; keep to one",
        ));
    }
    if message.chunk.len() > CHUNK_BYTES_MAX {
        let sentence = format!(
            "a chunk has {} bytes, {CHUNK_BYTES_MAX} are allowed",
            message.chunk.len()
        );
        return Err(Error::new(Reason::MessageTooLarge, sentence));
    }
    let total = upload.bytes + message.chunk.len() as u64;
    if total > ARTIFACT_BYTES_MAX {
        let sentence =
            format!("the artifact has {total} bytes or more, {ARTIFACT_BYTES_MAX} are allowed");
        return Err(Error::new(Reason::MessageTooLarge, sentence));
    }
    upload.write(&message.chunk).await.map_err(artifact_error)
}
