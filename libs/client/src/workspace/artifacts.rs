//! Artifacts, addressed by digest.

use bytes::{Bytes, BytesMut};
use futures::stream;
use servo_model::Digest;
use servo_proto::v1 as pb;

use super::Workspace;
use crate::client::Client;
use crate::error::Error;

const CHUNK_BYTES: usize = 256 * 1024;

impl Workspace {
    /// Stores an artifact under its digest and returns the digest. An existing artifact is not
    /// changed.
    pub async fn upload(
        &self,
        content: impl Into<Bytes>,
        kind: pb::ArtifactKind,
    ) -> Result<String, Error> {
        let first = pb::UploadArtifactRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            kind: kind.into(),
            ..Default::default()
        };
        upload(&self.client, first, content.into()).await
    }

    /// Returns the artifact with this digest, after verifying the content.
    pub async fn download(&self, digest: &str) -> Result<Bytes, Error> {
        let request = pb::DownloadArtifactRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            digest: digest.to_owned(),
            ..Default::default()
        };
        let mut pieces = self
            .client
            .planner()
            .download_artifact(request)
            .await?
            .into_inner();
        let mut content = BytesMut::new();
        while let Some(piece) = pieces.message().await? {
            content.extend_from_slice(&piece.chunk);
        }
        check(digest, &Digest::of(&content).to_string())?;
        Ok(content.freeze())
    }
}

/// Uploads in chunks; the first message describes the artifact.
pub(super) async fn upload(
    client: &Client,
    first: pb::UploadArtifactRequest,
    content: Bytes,
) -> Result<String, Error> {
    let digest = Digest::of(&content).to_string();
    let (tenant, workspace) = (first.tenant.clone(), first.workspace.clone());
    let next = move |chunk| pb::UploadArtifactRequest {
        tenant: tenant.clone(),
        workspace: workspace.clone(),
        chunk,
        ..Default::default()
    };
    let mut chunks = chunks(content);
    let chunk = chunks.next().unwrap_or_default();
    let first = pb::UploadArtifactRequest {
        digest: digest.clone(),
        chunk,
        ..first
    };
    let messages = stream::iter(std::iter::once(first).chain(chunks.map(next)));
    let stored = client
        .planner()
        .upload_artifact(messages)
        .await?
        .into_inner();
    check(&digest, &stored.digest)?;
    Ok(digest)
}

fn chunks(mut content: Bytes) -> impl Iterator<Item = Bytes> + Send {
    std::iter::from_fn(move || {
        let length = content.len().min(CHUNK_BYTES);
        (length > 0).then(|| content.split_to(length))
    })
}

fn check(expected: &str, actual: &str) -> Result<(), Error> {
    if expected == actual {
        Ok(())
    } else {
        Err(Error::Malformed(format!(
            "the artifact has the sha256 {actual}, not {expected}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_add_up_to_the_content() {
        for (length, count) in [(0, 0), (1, 1), (CHUNK_BYTES, 1), (CHUNK_BYTES + 1, 2)] {
            let content = Bytes::from(vec![7; length]);
            let pieces: Vec<Bytes> = chunks(content.clone()).collect();
            assert_eq!((pieces.len(), pieces.concat()), (count, content.to_vec()));
        }
    }
}
