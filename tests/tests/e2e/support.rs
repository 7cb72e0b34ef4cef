//! What the end-to-end tests share.

use std::path::{Path, PathBuf};

use servo_local::{LocalMesh, MeshOptions};
use tempfile::TempDir;

/// The folder of the binaries that were built together with this test.
pub(crate) fn binaries() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let folder = own.parent().and_then(Path::parent).unwrap().to_path_buf();
    assert!(folder.join("servo-gateway").exists(), "build the services first: `make test` does");
    folder
}

/// A whole mesh in a directory of its own.
pub(crate) struct Running {
    pub(crate) mesh: LocalMesh,
    _dir: TempDir,
}

impl Running {
    pub(crate) async fn start() -> Running {
        let dir = TempDir::new().unwrap();
        let options = MeshOptions { dir: dir.path().join("servo"), binaries: binaries(), database_url: None };
        Running { mesh: LocalMesh::start(options, |_| ()).await.unwrap(), _dir: dir }
    }
}

/// The ids of all living processes that name `dir` on their command line or in their environment.
pub(crate) fn processes_naming(dir: &Path) -> Vec<u32> {
    let name = dir.to_str().unwrap().as_bytes();
    let names = |file: PathBuf| {
        let bytes = std::fs::read(file).unwrap_or_default();
        bytes.windows(name.len()).any(|part| part == name)
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = std::process::id();
    ids.filter(|id| {
        *id != own && ["cmdline", "environ"].iter().any(|file| names(format!("/proc/{id}/{file}").into()))
    })
    .collect()
}
