//! DownloadArtifact: streams the bytes of an artifact.

use std::io::SeekFrom;

use bytes::BytesMut;
use futures::{StreamExt, stream};
use servo_mesh::{Error, Reason};
use servo_model::Digest;
use servo_proto::v1::{DownloadArtifactRequest, DownloadArtifactResponse};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tonic::Status;
use tonic::codegen::BoxStream;

use super::Planner;
use super::support::errors::{artifact_error, store_error};
use super::support::parse::scope;
use crate::store::artifacts;

const CHUNK_BYTES: usize = 256 * 1024;

pub(super) async fn download_artifact(
    planner: &Planner,
    request: DownloadArtifactRequest,
) -> Result<BoxStream<DownloadArtifactResponse>, Status> {
    let scope = scope(&request)?;
    let missing = || {
        Error::new(
            Reason::ArtifactNotFound,
            "nothing was uploaded under this digest in this workspace",
        )
    };
    let digest: Digest = request.digest.parse().map_err(|_| missing())?;
    let mut tx = planner.begin(&scope).await?;
    let found = artifacts::find(&mut tx, &scope, &digest)
        .await
        .map_err(store_error)?;
    drop(tx);
    let (_, size) = found.ok_or_else(missing)?;
    let total = size.unsigned_abs();
    if request.offset > total {
        let sentence = format!("is {}; the artifact has {total} bytes", request.offset);
        return Err(Error::bad_field("offset", sentence).into());
    }
    let mut file = File::open(planner.artifacts()?.path(&scope, &digest))
        .await
        .map_err(|_| missing())?;
    file.seek(SeekFrom::Start(request.offset))
        .await
        .map_err(artifact_error)?;
    let head = DownloadArtifactResponse {
        chunk: Default::default(),
        total_size: total,
    };
    Ok(stream::iter([Ok(head)]).chain(chunks(file)).boxed())
}

fn chunks(
    file: File,
) -> impl futures::Stream<Item = Result<DownloadArtifactResponse, Status>> + Send {
    stream::try_unfold(file, |mut file| async move {
        let mut chunk = BytesMut::with_capacity(CHUNK_BYTES);
        let read = file.read_buf(&mut chunk).await.map_err(artifact_error)?;
        let message = DownloadArtifactResponse {
            chunk: chunk.freeze(),
            total_size: 0,
        };
        Ok((read > 0).then_some((message, file)))
    })
}
