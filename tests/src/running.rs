//! A whole mesh for one test.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use servo_local::{LocalMesh, MeshOptions};
use tempfile::TempDir;

/// The folder of the binaries that were built together with this test.
pub fn binaries() -> PathBuf {
    let own = std::env::current_exe().expect("the test knows its own place");
    let folder = own
        .parent()
        .and_then(Path::parent)
        .expect("the test stands in deps/")
        .to_path_buf();
    assert!(
        folder.join("servo-gateway").exists(),
        "build the services first: `make test` does"
    );
    folder
}

/// A mesh in a directory of its own, which goes with it.
pub struct Running {
    pub mesh: LocalMesh,
    dir: TempDir,
}

impl Running {
    pub async fn start() -> Running {
        Running::start_with(|options| options).await
    }

    pub async fn start_with(wish: impl FnOnce(MeshOptions) -> MeshOptions) -> Running {
        Running::try_start(wish).await.expect("the mesh starts")
    }

    async fn try_start(wish: impl FnOnce(MeshOptions) -> MeshOptions) -> Result<Running> {
        let dir = TempDir::new().context("make a directory")?;
        let options = wish(MeshOptions::new(dir.path().join("servo"), binaries()));
        Ok(Running {
            mesh: LocalMesh::start(options, |_| ()).await?,
            dir,
        })
    }

    /// A file beside the mesh, outside of Servo.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}
