//! Artifacts on disk: one file per workspace and digest, written completely or not at all.

use std::io;
use std::path::{Path, PathBuf};

use servo_model::Digest;
use sha2::{Digest as _, Sha256};
use tokio::fs;
use tokio::io::AsyncWriteExt;

use crate::store::Scope;

/// The artifact directory from the configuration.
#[derive(Debug, Clone)]
pub(crate) struct ArtifactDir(PathBuf);

impl ArtifactDir {
    pub(crate) fn new(dir: &Path) -> ArtifactDir {
        ArtifactDir(dir.to_path_buf())
    }

    pub(crate) fn path(&self, scope: &Scope, digest: &Digest) -> PathBuf {
        self.folder(scope).join(digest.to_string())
    }

    /// Creates a temporary file; [`Upload::finish`] renames it to its digest.
    pub(crate) async fn begin(&self, scope: &Scope) -> io::Result<Upload> {
        let folder = self.folder(scope);
        fs::create_dir_all(&folder).await?;
        let path = folder.join(format!("upload-{:032x}", rand::random::<u128>()));
        let file = fs::File::create_new(&path).await?;
        Ok(Upload {
            file,
            path,
            hash: Sha256::new(),
            bytes: 0,
        })
    }

    /// Tenants and workspaces are DNS labels, so they are safe as path components.
    fn folder(&self, scope: &Scope) -> PathBuf {
        self.0
            .join(scope.tenant.as_str())
            .join(scope.workspace.as_str())
    }
}

/// A file that is being written. Dropping it before [`Upload::finish`] removes the file.
#[derive(Debug)]
pub(crate) struct Upload {
    file: fs::File,
    path: PathBuf,
    hash: Sha256,
    pub(crate) bytes: u64,
}

impl Upload {
    pub(crate) async fn write(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.hash.update(chunk);
        self.bytes += chunk.len() as u64;
        self.file.write_all(chunk).await
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest::from_bytes(self.hash.clone().finalize().into())
    }

    /// Syncs the bytes to disk and moves them to their final path.
    pub(crate) async fn finish(mut self, to: &Path) -> io::Result<()> {
        self.file.flush().await?;
        self.file.sync_all().await?;
        fs::rename(&self.path, to).await?;
        if let Some(folder) = to.parent() {
            fs::File::open(folder).await?.sync_all().await?;
        }
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // After `finish` this path no longer exists, so the error is ignored.
        let _ = std::fs::remove_file(&self.path);
    }
}
